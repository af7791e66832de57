from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.finding import Applicability, Severity
from trainlint.rule import Report, Rule
from trainlint.scout import comment


class UnusedSuppression(Rule):
    """A suppression comment hides nothing, or names a rule that does not exist.

    ## What it does
    Reports `# trainlint: ignore[...]`, `# trainlint: file-ignore[...]` and `# noqa: TL...`
    comments whose rules are not reported at that place, and names in them that are no rules.
    A name counts only when its rule runs, and a comment without names only when every rule of
    the default set runs. A bare `# noqa`, and codes of other linters, are never reported.

    ## Why is this bad?
    A comment that outlives its reason hides the next real bug on that line. A misspelt name hides
    nothing, while the reader believes that it does.

    ## Example
    ```python
    import torch

    optimizer.zero_grad()  # trainlint: ignore[zero-grad-missing]
    ```

    ## Use instead
    ```python
    import torch

    optimizer.zero_grad()
    ```

    ## Fix safety
    Safe: only names that hide nothing are removed, and the comment with the last of them.
    A misspelt name is left for you to correct.

    ## When not to use it
    Switch it off while a file is checked by different versions of trainlint, one of which needs
    the comment. To keep a single comment, add `unused-suppression` to its names.

    ## References
    - [flake8: ignoring errors in-line](https://flake8.pycqa.org/en/latest/user/violations.html)
    """

    code = "TLU001"
    severity = Severity.WARNING
    scout = comment(rb"trainlint:") | comment(rb"#\s*(?i:noqa)\s*:[^\n]*\bTL[A-Z]\d")
    help = "remove what suppresses nothing"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        """Nothing by itself: it takes the findings of all other rules to know what is unused.

        ``trainlint.suppression`` reports in this rule's name after they have run.
        """
        yield from ()
