"""Code that several processes run: which of it only some ranks reach."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import block_of
from trainlint.analysis.receivers import last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_SPEAKS_OF_RANK = re.compile(
    r"rank|is_?main|is_?master|main_?process|master_?process|is_?primary|is_?chief|is_?first|on_?master"
    r"|\bmaster\b|is_?zero|global_zero|save_to_disk|process_index|proc_id|node_id|is_?root"
    r"|\bgpu(_id)?\s*==",
    re.IGNORECASE,
)
_DISTRIBUTED = re.compile(r"\binit_process_group\(|\bDistributedDataParallel\(|\bDDP\(|LOCAL_RANK")
_LEAVES = (ast.Return, ast.Continue, ast.Raise)


def is_distributed(file: FileModel) -> bool:
    """Whether the file itself starts process groups or wraps models for them."""
    return bool(_DISTRIBUTED.search(file.source.text))


def is_one_process(file: FileModel) -> bool:
    """Whether every process group that the file starts has one member."""
    groups = [call for call in file.nodes(ast.Call) if last_name(call) == "init_process_group"]
    sizes = [item.value for call in groups for item in call.keywords if item.arg == "world_size"]
    are_one = all(isinstance(size, ast.Constant) and size.value == 1 for size in sizes)
    return bool(groups) and len(sizes) == len(groups) and are_one


def speaks_of_rank(test: ast.expr) -> bool:
    """Whether a test asks which process this is."""
    return bool(_SPEAKS_OF_RANK.search(ast.unparse(test)))


def rank_guards(file: FileModel, node: ast.AST) -> list[ast.If]:
    """The ``if`` statements about ranks that decide whether code is reached, in its function.

    Those around it, and those before it that leave: ``if rank != 0: return``.
    """
    found: list[ast.If] = []
    current: ast.AST = file.index.statement(node)
    while not isinstance(
        current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    ):
        parent = file.index.parents[current]
        if isinstance(current, ast.stmt):
            found.extend(_leaving_before(block_of(file, current), current))
        if isinstance(parent, ast.If) and speaks_of_rank(parent.test):
            found.append(parent)
        current = parent
    return found


def _leaving_before(block: list[ast.stmt], statement: ast.stmt) -> list[ast.If]:
    return [
        earlier
        for earlier in block[: block.index(statement)]
        if isinstance(earlier, ast.If)
        and speaks_of_rank(earlier.test)
        and isinstance(earlier.body[-1], _LEAVES)
        and not earlier.orelse
    ]
