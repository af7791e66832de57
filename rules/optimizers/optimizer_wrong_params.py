from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of
from trainlint.analysis.knowledge.training import is_optimizer_class, looks_like_optimizer
from trainlint.analysis.receivers import last_name, receiver_role
from trainlint.analysis.roles import Role, by_name
from trainlint.analysis.spelling import is_name_chain
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import part_of_identifier, pattern

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_GENERIC = frozenset(
    {
        "opt",
        "optim",
        "optimizer",
        "optimiser",
        "net",
        "network",
        "model",
        "self",
        "solver",
        "trainer",
        "the",
    }
)


class OptimizerWrongParams(Rule):
    """An optimizer got the parameters, or the state, that belong to another.

    ## What it does
    Reports, where networks are trained in pairs: two optimizers on one network while its partner,
    which the second is named after, has none; the same parameters twice in one optimizer; and one
    optimizer that loads two states while another loads none.

    ## Why is this bad?
    It is a copied line with one name not changed. One network is never trained (or trained twice),
    and the losses still move, because the other one learns.

    ## Example
    ```python
    import torch

    def make_optimizers(netG, netD):
        optimizer_g = torch.optim.Adam(netG.parameters(), lr=2e-4)
        optimizer_d = torch.optim.Adam(netG.parameters(), lr=2e-4)
        return optimizer_g, optimizer_d
    ```

    ## Use instead
    ```python
    import torch

    def make_optimizers(netG, netD):
        optimizer_g = torch.optim.Adam(netG.parameters(), lr=2e-4)
        optimizer_d = torch.optim.Adam(netD.parameters(), lr=2e-4)
        return optimizer_g, optimizer_d
    ```

    ## When not to use
    Two optimizers on one network on purpose are not reported: no other network waits for one.

    ## References
    - [Constructing an optimizer](https://docs.pytorch.org/docs/stable/optim.html#constructing-it)
    """

    code = "TLO008"
    severity = Severity.ERROR
    scout = part_of_identifier("optim", "Optim") & pattern(
        rb"(?s:\.\s*(parameters|load_state_dict)\s*\(.*\.\s*\1\s*\()"
    )
    help = "give each optimizer the parameters, and the state, of its own network"

    def check(self, file: FileModel) -> Iterator[Report]:
        made = [call for call in file.nodes(ast.Call) if _makes_optimizer(file, call)]
        for call in made:
            twice = _repeated(call)
            if twice is not None:
                text = ast.unparse(twice)
                yield self.report(
                    twice, f"`{text}` is in this optimizer twice: one should be another"
                )
        for call, network, forgotten in _copied(file, made):
            yield self.report(
                call,
                f"this optimizer gets the parameters of `{network}`, which has one already, "
                f"and `{forgotten}` has none",
            )
        for call, name, other in _loaded_twice(file):
            yield self.report(
                call, f"`{name}` loads a second state here, and `{other}` never loads one"
            )


def _makes_optimizer(file: FileModel, call: ast.Call) -> bool:
    dotted = file.qualified(call.func)
    return dotted is not None and is_optimizer_class(dotted) and bool(call.args)


def _repeated(call: ast.Call) -> ast.Call | None:
    """The second ``a.parameters()`` of ``[*a.parameters(), *a.parameters()]`` and the like."""
    seen: set[str] = set()
    for part in _joined(call.args[0]):
        text = ast.dump(part)
        if text in seen:
            return part
        seen.add(text)
    return None


def _joined(node: ast.expr) -> Iterator[ast.Call]:
    """The ``.parameters()`` calls that are joined to one list."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _joined(node.left)
        yield from _joined(node.right)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            yield from _joined(item)
    elif isinstance(node, ast.Starred):
        yield from _joined(node.value)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params":
                yield from _joined(value)
    elif isinstance(node, ast.Call) and _network(node) is not None:
        yield node
    elif isinstance(node, ast.Call) and last_name(node.func) in ("list", "chain", "tuple"):
        for item in node.args:
            yield from _joined(item)


def _network(node: ast.AST) -> ast.expr | None:
    """``net`` of ``net.parameters()``."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not is_method or node.args:  # type: ignore[attr-defined]
        return None
    function = node.func  # type: ignore[attr-defined]
    return (
        function.value if function.attr == "parameters" and is_name_chain(function.value) else None
    )


def _copied(file: FileModel, made: list[ast.Call]) -> Iterator[tuple[ast.Call, str, str]]:
    """A second optimizer on a network whose partner, by the names, was meant."""
    first: dict[tuple[object, str], str] = {}
    for call in made:
        network, target = _network(call.args[0]), _target(file, call)
        if network is None or target is None:
            continue
        place = (file.index.scope(call), ast.unparse(network))
        earlier = first.setdefault(place, target)
        if earlier == target:
            continue
        wanted = _words(target) - _words(earlier)
        named = _words(last_name(network))
        for other in _siblings(file, call, network):
            words = _words(other.rpartition(".")[2])
            is_meant = _agree(words - named, wanted) and not _agree(named - words, wanted)
            if is_meant and f"{other}.parameters()" not in _optimized(file, made, call):
                yield call, ast.unparse(network), other
                break


def _optimized(file: FileModel, made: list[ast.Call], beside: ast.Call) -> str:
    """All that the optimizers of the same function or class are given."""
    return " ".join(ast.unparse(call.args[0]) for call in made if _is_beside(file, call, beside))


def _is_beside(file: FileModel, one: ast.AST, other: ast.AST) -> bool:
    owner = file.index.enclosing_class(other)
    if owner is not None:
        return file.index.enclosing_class(one) is owner
    return file.index.scope(one) is file.index.scope(other)


def _target(file: FileModel, call: ast.Call) -> str | None:
    statement = file.index.parents.get(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return last_name(statement.targets[0])
    return None


def _siblings(file: FileModel, call: ast.Call, network: ast.expr) -> Iterator[str]:
    """Other variables of the scope, or attributes of the object, that sound like networks."""
    if isinstance(network, ast.Name):
        for name, bound in file.index.names_bound_in(file.index.scope(call)).items():
            is_variable = any(isinstance(item, (ast.Name, ast.arg)) for item in bound)
            if name != network.id and is_variable and by_name(name) is Role.MODULE:
                yield name
        return
    owner = file.index.enclosing_class(call)
    if owner is None:
        return
    for name in file.attribute_assignments(owner):
        if name != last_name(network) and by_name(name) is Role.MODULE:
            yield f"self.{name}"


def _words(name: str) -> set[str]:
    if re.fullmatch("o[a-z]", name):  # ``od`` for the discriminator's
        return {name[1]}
    return {word.lower() for word in _WORD.findall(name)} - _GENERIC


def _agree(words: set[str], wanted: set[str]) -> bool:
    """``d`` and ``discriminator``, ``critic`` and ``critic``."""
    return any(
        one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])
        for one in words
        for other in wanted
    )


def _loaded_twice(file: FileModel) -> Iterator[tuple[ast.Call, str, str]]:
    """An optimizer that loads two states in one block, and one of its scope that loads none."""
    loads = [
        call
        for call in file.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "load_state_dict"
        and call.args
        and receiver_role(file, call.func.value)[0] is Role.OPTIMIZER
    ]
    for position, call in enumerate(loads):
        assert isinstance(call.func, ast.Attribute)
        name = ast.unparse(call.func.value)
        block = block_of(file, file.index.statement(call))
        loading = {ast.unparse(item.func) for item in loads if _is_beside(file, item, call)}
        for earlier in loads[:position]:
            assert isinstance(earlier.func, ast.Attribute)
            if (
                ast.unparse(earlier.func.value) == name
                and ast.dump(earlier.args[0]) != ast.dump(call.args[0])
                and file.index.statement(earlier) in block
                and (other := _never_loads(file, call.func.value, loading)) is not None
            ):
                yield call, name, other
                break


def _never_loads(file: FileModel, optimizer: ast.expr, loading: set[str]) -> str | None:
    for other in _optimizers_beside(file, optimizer):
        if f"{other}.load_state_dict" not in loading:
            return other
    return None


def _optimizers_beside(file: FileModel, optimizer: ast.expr) -> Iterator[str]:
    if isinstance(optimizer, ast.Name):
        for name in file.index.names_bound_in(file.index.scope(optimizer)):
            if looks_like_optimizer(name):
                yield name
        return
    owner = file.index.enclosing_class(optimizer)
    if owner is not None and isinstance(optimizer, ast.Attribute):
        for name in file.attribute_assignments(owner):
            if looks_like_optimizer(name):
                yield f"{ast.unparse(optimizer.value)}.{name}"
