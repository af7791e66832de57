from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.index import Function
from trainlint.analysis.ranks import rank_guards
from trainlint.analysis.receivers import last_name
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, part_in_any_case, text

_COLLECTIVES = frozenset(
    {
        "all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "all_to_all",
        "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object",
        "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
        "scatter_object_list",
    }
)  # fmt: skip
_OF_ACCELERATOR = frozenset({"gather", "gather_for_metrics", "reduce", "wait_for_everyone"})
_ACCELERATOR = re.compile(r"accelerator$", re.IGNORECASE)
# Which process this is, and nothing else: one of all goes in.
_ONE_RANK = re.compile(
    r"(not )?([\w.]*\b(get_)?(global_|local_|node_)?rank(\(\))?"
    r"( ==| !=| in| not in| >) ?[\w.\-(), \[\]]+"
    r"|[\w.]*\bis_(local_)?(main|master)(_process)?(\(\))?|[\w.]*\bmaster_process"
    r"|[\w.]*\b(get_)?(global_|local_)?rank(\(\))?)",
    re.IGNORECASE,
)

# Without a process group the rank is -1.
_IS_DISTRIBUTED = re.compile(r"(!=|>) ?-1|>= ?0")


_ENDS = frozenset({"__enter__", "__exit__"})


class CollectiveUnderRankGuard(Rule):
    """A collective operation is called by some ranks only.

    ## What it does
    Reports `all_reduce`, `gather`, `broadcast`, `barrier` and the like, and accelerate's
    `gather_for_metrics`, inside `if rank == 0:` or after `if rank != 0: return`, where no other
    branch calls it too.

    ## Why is this bad?
    A collective operation waits for all processes of its group. Those that never call it keep the
    others waiting until the timeout kills the run.

    ## Example
    ```python
    import torch.distributed as dist

    def log_loss(loss, logger):
        if dist.get_rank() == 0:
            dist.all_reduce(loss)
            logger.info("loss %.3f", loss.item() / dist.get_world_size())
    ```

    ## Use instead
    ```python
    import torch.distributed as dist

    def log_loss(loss, logger):
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            logger.info("loss %.3f", loss.item() / dist.get_world_size())
    ```

    ## When not to use it
    For a group that holds just the ranks that get there; with `group=` the rule is silent.

    ## References
    - [torch.distributed: collective functions](https://docs.pytorch.org/docs/stable/distributed.html#collective-functions)
    """

    code = "TLR005"
    severity = Severity.ERROR
    preview = True
    scout = (
        identifier(*_COLLECTIVES, *_OF_ACCELERATOR)
        & part_in_any_case("rank", "main", "master")
        & (identifier("distributed") | part_in_any_case("accelerator") | text("import *"))
    )
    help = "call it on all ranks, and let one of them use the result"

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in file.nodes(ast.Call):
            name = _collective(file, call)
            if name is None or any(keyword.arg == "group" for keyword in call.keywords):
                continue
            guard = next((item for item in rank_guards(file, call) if _is_for_one(item)), None)
            if guard is not None and not _others_call_it(file, guard, call, name):
                yield self.report(
                    call,
                    f"`{name}` waits for all ranks, but line {guard.lineno} lets only some of them "
                    "get here",
                )


def _collective(file: FileModel, call: ast.Call) -> str | None:
    name = last_name(call)
    if name in _COLLECTIVES:
        dotted = file.qualified(call.func) or ""
        if dotted in (f"torch.distributed.{name}", f"torch.distributed.distributed_c10d.{name}"):
            return name
    if name in _OF_ACCELERATOR and isinstance(call.func, ast.Attribute):
        return name if _ACCELERATOR.search(last_name(call.func.value)) else None
    return None


def _is_for_one(guard: ast.If) -> bool:
    tests = guard.test.values if isinstance(guard.test, ast.BoolOp) else [guard.test]
    if isinstance(guard.test, ast.BoolOp) and isinstance(guard.test.op, ast.Or):
        return False
    texts = [ast.unparse(test) for test in tests]
    return any(_ONE_RANK.fullmatch(text) and not _IS_DISTRIBUTED.search(text) for text in texts)


def _others_call_it(file: FileModel, guard: ast.If, call: ast.Call, name: str) -> bool:
    """Whether the ranks that do not get here call it elsewhere: a branch, or a barrier of pairs."""
    functions = _functions_around(file, call)
    return any(
        other is not call
        and _collective(file, other) == name
        and file.index.enclosing_function(other) in functions
        and _is_elsewhere(file, guard, call, other)
        for other in file.nodes(ast.Call)
    )


def _functions_around(file: FileModel, node: ast.AST) -> list[Function | None]:
    """The function that holds a node, and those that this one is nested in; else the module.

    What a context manager does when it is entered and when it is left belongs together.
    """
    found = [file.index.enclosing_function(node)]
    while found[-1] is not None and (outer := file.index.enclosing_function(found[-1])):
        found.append(outer)
    owner = file.index.enclosing_class(node)
    if owner is not None and any(item is not None and item.name in _ENDS for item in found):
        found += [item for item in owner.body if isinstance(item, ast.FunctionDef)]
    return found


def _is_elsewhere(file: FileModel, guard: ast.If, call: ast.Call, other: ast.Call) -> bool:
    branch = guard.body if any(call in set(ast.walk(item)) for item in guard.body) else guard.orelse
    is_in_other_branch = not any(other in set(ast.walk(item)) for item in branch)
    return is_in_other_branch and bool(rank_guards(file, other))
