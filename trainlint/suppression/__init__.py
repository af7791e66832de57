"""Comments that hide findings: understood, checked for use, removed and added.

- ``# trainlint: ignore[rule-name, CODE]`` on any line of a statement, or in the comment block
  directly above it; without brackets it hides every rule.
- ``# trainlint: file-ignore[...]`` anywhere in a file, for the whole file.
- ``# noqa: CODE`` and ``# noqa`` on any line of a statement, as flake8 understands them.
"""

from trainlint.suppression.adding import AddedIgnores, add_ignores
from trainlint.suppression.suppressions import Suppressions
from trainlint.suppression.unused import UnusedSuppression, remove_unused

__all__ = ["AddedIgnores", "Suppressions", "UnusedSuppression", "add_ignores", "remove_unused"]
