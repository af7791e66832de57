"""Notebooks: cells as one Python text, magics, places, and writing back."""

from __future__ import annotations

import ast
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainlint.analysis import SourceError, SourceFile
from trainlint.finding import Finding, Severity
from trainlint.notebook import Notebook

PATH = Path("train.ipynb")
PYTHON = {"language_info": {"name": "python"}, "kernelspec": {"name": "python3"}}


def lines_of(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def code(source: str | list[str], **more: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": 7,
        "metadata": {},
        "outputs": [{"data": {"text/plain": ["0.1 é"]}, "output_type": "display_data"}],
        "source": source,
        **more,
    }


def content(*cells: dict[str, Any], metadata: Any = PYTHON) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def as_jupyter_writes(notebook: dict[str, Any]) -> bytes:
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def notebook(*sources: str) -> Notebook:
    return Notebook.from_bytes(
        PATH, as_jupyter_writes(content(*(code(lines_of(source)) for source in sources)))
    )


def finding(line: int, end_line: int, statement: tuple[int, int]) -> Finding:
    return Finding(
        "n.ipynb", line, 1, end_line, 2, "C", "r", Severity.ERROR, "", "", None, *statement
    )


class TestText:
    def test_cells_in_order(self) -> None:
        markdown = {"cell_type": "markdown", "metadata": {}, "source": "# not ( python"}
        data = as_jupyter_writes(content(code("a = 1\nb"), markdown, code(["c = 3\n", "d"])))
        tree = ast.parse(Notebook.from_bytes(PATH, data).text)
        statements = [ast.unparse(node) for node in tree.body if not isinstance(node, ast.Pass)]
        assert statements == ["a = 1", "b", "c = 3", "d"]

    @pytest.mark.parametrize(
        "magic",
        [
            "%matplotlib inline",
            "%%time",
            "!pip install torch",
            "!!ls",
            "?model",
            "model.fit?",
            "torch.nn.*Loss?",
            "model??",
            "files = !ls *.py",
            "a, b = %capture_it x",
            "self.x[0] = !ls",
            "!pip install \\\n    torch \\\n  torchvision",
            "if x:\n    %time f()\n    !ls",
            "for f in files:\n    out = !cat {f}\n    print(out)",
            "%%bash\nfor f in *; do echo $f; done\n\nls",
            "\n%%html\n<b>(</b>",
            "%%writefile train.py\nimport (",
            ",f a b",
            "pip install torch",
            "ls -l data/*.py",
            "cd ..",
        ],
    )
    def test_magics(self, magic: str) -> None:
        read = notebook(f"x = 0\n{magic}" if not magic.lstrip().startswith("%%") else magic)
        ast.parse(read.text)
        assert read.cell_sources_of(read.text) == read.cell_sources

    @pytest.mark.parametrize(
        "source",
        [
            "x = (a\n  % b\n  ) ",
            "x = a \\\n  % b",
            's = """\n%time\n!ls\nreally?\n"""',
            '"""Really?"""',
            "'''\n?\n'''",
            "x = 'it\\'s'  # (\ny = a % b\nz = {1: [2]}[1]",
            "print('a = %s' % x)",
            "x = a != b",
            "# %matplotlib inline",
            "await f()",
            "cat = 3",
            "cat in cats",
            "cat.meow()",
        ],
    )
    def test_plain_python_stays_as_it_is(self, source: str) -> None:
        assert notebook(source).text.startswith(source + "\n")

    def test_cell_that_runs_python_under_a_magic(self) -> None:
        assert "loss.backward()\n" in notebook("%%time\nloss.backward()").text

    def test_magic_assignments_still_assign(self) -> None:
        (statement, _) = ast.parse(notebook("files = !ls").text).body
        assert isinstance(statement, ast.Assign)
        assert ast.unparse(statement.targets[0]) == "files"

    @pytest.mark.parametrize(
        "metadata",
        [
            {"language_info": {"name": "julia"}},
            {"kernelspec": {"name": "ir", "language": "R"}},
            {"kernelspec": {"name": "ir"}},
        ],
    )
    def test_other_languages(self, metadata: Any) -> None:
        data = as_jupyter_writes(content(code("x <- (1"), metadata=metadata))
        read = Notebook.from_bytes(PATH, data)
        assert read.text == ""
        assert read.with_text("") == data

    @pytest.mark.parametrize("metadata", [{}, None, [], {"kernelspec": {"name": "conda-env-py"}}])
    def test_unsaid_language_is_python(self, metadata: Any) -> None:
        data = as_jupyter_writes(content(code("x"), metadata=metadata))
        assert Notebook.from_bytes(PATH, data).text.startswith("x\n")

    def test_cell_of_another_language(self) -> None:
        other = code("SELECT 1", metadata={"vscode": {"languageId": "sql"}})
        data = as_jupyter_writes(content(other, code("x")))
        assert Notebook.from_bytes(PATH, data).cell_sources == ["x"]

    def test_format_3(self) -> None:
        cell = {"cell_type": "code", "input": ["a\n", "b"], "language": "python", "outputs": []}
        data = json.dumps({"worksheets": [{"cells": [cell]}], "metadata": {"name": ""}}).encode()
        read = Notebook.from_bytes(PATH, data)
        assert read.cell_sources == ["a\nb"]
        changed = json.loads(read.with_text(read.text.replace("b\n", "c\n", 1)))
        assert changed["worksheets"][0]["cells"][0]["input"] == ["a\n", "c"]

    @pytest.mark.parametrize("data", [b"", b" \n", as_jupyter_writes(content())])
    def test_empty(self, data: bytes) -> None:
        read = Notebook.from_bytes(PATH, data)
        assert (read.text, read.cell_sources, read.with_text("")) == ("", [], data)

    @pytest.mark.parametrize(
        "data",
        [
            b"{",
            b"[]",
            b"\xff",
            b"{}",
            b'{"cells": 3}',
            b'{"cells": [3]}',
            b'{"cells": [{"cell_type": "code"}]}',
            b'{"cells": [{"cell_type": "code", "source": [3]}]}',
            b'{"cells": []}}',
            b"[" * 100_000,
        ],
    )
    def test_invalid_notebooks(self, data: bytes) -> None:
        with pytest.raises(SourceError) as caught:
            Notebook.from_bytes(PATH, data)
        assert "\n" not in str(caught.value)

    def test_syntax_errors_name_the_cell(self) -> None:
        read = notebook("x = 1", "%time f()\nprint 'x'")
        with pytest.raises(SourceError):
            _ = SourceFile.from_text(PATH, read.text).tree
        assert str(read.syntax_error()).startswith("cannot parse cell 2, line 2: ")
        assert notebook("x = 1").syntax_error() is None


class TestPlaces:
    def test_locate(self) -> None:
        read = notebook("a\nb", "", "c")
        numbers = range(1, read.text.count("\n") + 1)
        assert [read.locate(number) for number in numbers] == [
            (1, 1),
            (1, 2),
            (1, 2),
            (2, 1),
            (2, 1),
            (3, 1),
            (3, 1),
        ]

    def test_place(self) -> None:
        placed = notebook("a", "b(\nc)").place(finding(4, 4, (3, 4)))
        assert (placed.cell, placed.line, placed.end_line) == (2, 2, 2)
        assert (placed.statement_line, placed.statement_end_line) == (1, 2)

    def test_lines_that_a_message_speaks_of(self) -> None:
        said = dataclasses.replace(finding(4, 4, (4, 4)), message="line 1, line 3; line 3 of a.py")
        placed = notebook("a", "b(\nc)").place(said)
        assert placed.message == "line 1 of cell 1, line 1; line 3 of a.py"

    @pytest.mark.parametrize(
        ("source", "displayed"),
        [
            ("x = 1\nmodel.eval", {2}),
            ("model.eval  # shown\n\n# really\n", {1}),
            ("model.eval;", set()),
            ("f(\n  1\n)", {3}),
            ("%time f()", set()),
            ("", set()),
        ],
    )
    def test_cell_end_lines(self, source: str, displayed: set[int]) -> None:
        assert notebook(source).cell_end_lines == displayed


class TestWriting:
    def test_unchanged(self) -> None:
        data = as_jupyter_writes(content(code(["a\n", "b"]), code("c")))
        read = Notebook.from_bytes(PATH, data)
        assert read.with_text(read.text) == data

    @pytest.mark.parametrize(
        "dump",
        [
            {"indent": 1, "ensure_ascii": False},
            {"indent": 4, "ensure_ascii": True, "sort_keys": True},
            {"indent": "\t", "ensure_ascii": False},
            {"separators": (",", ":")},
            {},
        ],
    )
    @pytest.mark.parametrize("line_end", ["", "\n", "\r\n"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    @pytest.mark.parametrize("source", ["é = 1\nx\nlast", ["é = 1\n", "x\n", "last"]])
    def test_only_the_changed_source_changes(
        self, dump: dict[str, Any], line_end: str, mark: str, source: Any
    ) -> None:
        def written(middle: str) -> bytes:
            changed = (
                source.replace("x", middle)
                if isinstance(source, str)
                else [line.replace("x", middle) for line in source]
            )
            text = json.dumps(content(code("a"), code(changed), code(["b"])), **dump)
            return (mark + text.replace("\n", line_end or "\n") + line_end).encode()

        read = Notebook.from_bytes(PATH, written("x"))
        assert read.with_text(read.text.replace("x\n", "ü\n", 1)) == written("ü")

    def test_lines_added_and_removed(self) -> None:
        read = notebook("a\nb", "c\nd", "e")
        changed = read.text.replace("a\n", "a\nz\n").replace("c\n", "")
        cells = json.loads(read.with_text(changed))["cells"]
        assert [cell["source"] for cell in cells] == [["a\n", "z\n", "b"], ["d"], ["e"]]

    def test_one_line_cells_grow_in_the_same_form(self) -> None:
        read = notebook("a")
        text = read.with_text(read.text.replace("a\n", "a\nb\n")).decode()
        assert '"source": [\n    "a\\n",\n    "b"\n   ]' in text

    def test_cells_may_become_empty_and_be_filled(self) -> None:
        read = Notebook.from_bytes(PATH, as_jupyter_writes(content(code(["a"]), code([]))))
        (_, first_end, _, second_end, _) = read.text.split("\n")
        swapped = f"\n{first_end}\nb\n{second_end}\n"
        cells = json.loads(read.with_text(swapped))["cells"]
        assert [cell["source"] for cell in cells] == [[], ["b"]]

    def test_magics_return_with_the_new_indentation(self) -> None:
        read = notebook("if x:\n  %time f()\n  y")
        lines = read.text.split("\n")
        lines[1:3] = ["  with z:", "  " + lines[1], "    w"]
        assert read.cell_sources_of("\n".join(lines)) == ["if x:\n  with z:\n    %time f()\n    w"]

    def test_windows_line_ends_in_a_cell(self) -> None:
        read = Notebook.from_bytes(PATH, as_jupyter_writes(content(code("a\r\nb\r\n"))))
        changed = json.loads(read.with_text(read.text.replace("b\n", "c\n", 1)))
        assert changed["cells"][0]["source"] == "a\r\nc\r\n"

    @pytest.mark.parametrize("source", ["%time f()\nx", "%%time\nx", "%%bash\nls"])
    def test_a_change_that_would_break_a_magic_is_refused(self, source: str) -> None:
        read = notebook(source)
        for broken in (read.text.split("\n", 1)[1], read.text + "import torch\n", ""):
            with pytest.raises(SourceError, match="cannot write the notebook"):
                read.with_text(broken)

    @pytest.mark.parametrize("source", ["%%time\nx", "%%bash\nls"])
    def test_nothing_is_put_above_a_cell_magic(self, source: str) -> None:
        read = notebook(source)
        with pytest.raises(SourceError, match="touches a cell magic"):
            read.with_text("import torch\n" + read.text)


SOURCES = st.lists(
    st.sampled_from(
        ["x = 1", "%time f()", "!ls \\", "  indented", "'''", "(", ")", "", "y?", "# c", "z = !ls"]
    )
).map("\n".join)


@settings(max_examples=50)
@given(st.lists(SOURCES | st.text(), max_size=4))
def test_any_cells_come_back_as_they_were(sources: list[str]) -> None:
    data = as_jupyter_writes(content(*map(code, sources)))
    read = Notebook.from_bytes(PATH, data)
    assert read.cell_sources == sources
    assert read.cell_sources_of(read.text) == sources
    assert read.with_text(read.text) == data
    read.syntax_error()


@settings(max_examples=50)
@given(
    st.binary()
    | st.text().map(str.encode)
    | st.recursive(
        st.none() | st.text(max_size=3) | st.sampled_from(["cells", "code"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["cells", "cell_type", "source", "metadata"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_file_is_a_crash(data: bytes) -> None:
    try:
        read = Notebook.from_bytes(PATH, data)
    except SourceError:
        return
    assert read.with_text(read.text) == data
