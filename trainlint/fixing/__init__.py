"""Carries out repairs: ``fix_source`` edits the concrete syntax tree of a file with LibCST.

Importing this package does not import LibCST (0.3 s); only a file that gets fixed pays for it.
For the same reason ``Editor`` is for annotations: import it below ``if TYPE_CHECKING:``.
"""

from typing import TYPE_CHECKING

from trainlint.fixing.engine import FixResult, fix_source
from trainlint.fixing.errors import CannotFix

if TYPE_CHECKING:
    from trainlint.fixing.editor import Editor as Editor

__all__ = ["CannotFix", "FixResult", "fix_source"]
