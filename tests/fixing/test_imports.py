"""Imports that a repair needs."""

from __future__ import annotations

import ast

import pytest

from tests.fixing.repairing import fixed, repaired
from trainlint.fixing.editor import Editor


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x\n", "import torch\nx\n"),
        ("'doc'\n\nx\n", "'doc'\nimport torch\n\nx\n"),
        ("#!/bin/sh\n# coding: utf-8\n\nx\n", "#!/bin/sh\n# coding: utf-8\n\nimport torch\nx\n"),
        ("from __future__ import a\n\nx\n", "from __future__ import a\nimport torch\n\nx\n"),
        ("import a; import b  # two\nx\n", "import a; import b  # two\nimport torch\nx\n"),
        (
            "import a\ntry: import b\nexcept E: b = 0\nimport c\n\nx\n",
            "import a\ntry: import b\nexcept E: b = 0\nimport c\nimport torch\n\nx\n",
        ),
        ("import a\nx = 1\nimport b\n", "import a\nimport torch\nx = 1\nimport b\n"),
        ("def f():\n  import torch\n", "import torch\ndef f():\n  import torch\n"),
        ("if TYPE_CHECKING: import torch\n", "import torch\nif TYPE_CHECKING: import torch\n"),
        ("import torch as th\n", "import torch as th\nimport torch\n"),
    ],
)
def test_adding(before: str, after: str) -> None:
    assert repaired(before, lambda editor, _: editor.ensure_import("import torch")) == after


@pytest.mark.parametrize(
    "text",
    [
        "import torch.nn as nn, torch.optim\n",
        "import a; import torch\n",
        "try:\n  import torch\nexcept ImportError:\n  torch = None\n",
        "for torch in x: pass\n",
        "with a as (b, torch): pass\n",
        "def torch(): pass\n",
    ],
)
def test_what_is_bound_is_not_imported_again(text: str) -> None:
    assert not fixed(text, lambda editor, _: editor.ensure_import("import torch")).applied


def test_two_repairs_that_need_the_same_import() -> None:
    def first(editor: Editor, tree: ast.Module) -> None:
        editor.ensure_import("import torch")
        editor.insert_before(tree.body[0], "torch.a()")

    def second(editor: Editor, tree: ast.Module) -> None:
        editor.ensure_import("import torch")
        editor.insert_after(tree.body[0], "torch.b()")

    assert repaired("x\n", first, second) == "import torch\ntorch.a()\nx\ntorch.b()\n"
