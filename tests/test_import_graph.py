"""Which files run in one program, told by their imports."""

from __future__ import annotations

from pathlib import Path

from trainlint.analysis.import_graph import ImportGraph

_SOURCES = {
    Path("p/train.py"): b"import data\nfrom nets import (\n    small,\n    losses as l,\n)\n",
    Path("p/data.py"): b"import torch\n",
    Path("p/nets/__init__.py"): b"from .small import Small\n",
    Path("p/nets/small.py"): b"",
    Path("p/nets/losses.py"): b"",
    Path("p/other.py"): b"import data  # imports = 'train'\n",
    Path("p/main.py"): b"def main():\n    from train import fit\n",
}


def test_importers_and_what_they_import_are_connected_and_neighbours_are_not() -> None:
    found = ImportGraph(_SOURCES).connected(Path("p/train.py"))
    assert found == {path for path in _SOURCES if path.name != "other.py"}


def test_a_file_without_imports_is_alone() -> None:
    assert ImportGraph({Path("a.py"): b""}).connected(Path("a.py")) == {Path("a.py")}
