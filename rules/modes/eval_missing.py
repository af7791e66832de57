from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.evaluation_loops import (
    evaluation_loop,
    evaluation_phase,
    scores_held_out_data,
)
from trainlint.analysis.evaluations import (
    EVALUATES,
    KEEPS_SCORES,
    MEASURES,
    SWITCHES_TO_EVALUATION,
    TRAINS_BY_FLAG,
    Blame,
    wrong_evaluations,
)
from trainlint.analysis.places import place
from trainlint.analysis.protocols.modes import ENTRY, EVAL, TRAIN, ForwardPass
from trainlint.analysis.roles import unwrapped
from trainlint.analysis.spelling import is_name_chain
from trainlint.analysis.structure import is_mode_sensitive
from trainlint.analysis.values import Instance, Value
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor

# Generators are sampled with batch statistics by convention (DCGAN, pix2pix).
_GENERATOR = re.compile(r"^(net)?_?G(_|$)|gen(erator)?s?$|^G[AB_]|decoder$", re.IGNORECASE)
_SETS_UP = re.compile(r"_*(init|setup|set_up|load|build|prepare|create|make|enter)")
_SWITCHES = re.compile(r"\.eval\(|\.train\((mode=)?False")
_ON_PURPOSE = re.compile(
    r"dropout.{0,20}\.train\(|enable_dropout|mc_?dropout|monte.?carlo|mc_?samples|uncertain|bayes"
    r"|update_bn|batch.?stat|adabn|\btent\b|test.time.(training|adapt)",
    re.IGNORECASE,
)


class EvalMissing(Rule):
    """A model is evaluated in train mode.

    ## What it does
    Follows every path to a loop over validation or test data, through helpers and other files, and
    reports a model that nothing has put in eval mode on the way. `no_grad()` does not do that.
    A helper that only some callers use without `eval()` is reported at the call that is wrong, or
    with the place of that call where it stands in another file.

    ## Why is this bad?
    Dropout goes on dropping, and batch norm normalises with the statistics of the evaluation batch
    and stores them: metrics are noisy and too low, and the running statistics are polluted.

    ## Example
    ```python
    import torch

    def validate(model, val_loader, criterion):
        total = 0.0
        with torch.no_grad():
            for x, y in val_loader:
                total += criterion(model(x), y).item()
        return total / len(val_loader)
    ```

    ## Use instead
    ```python
    import torch

    def validate(model, val_loader, criterion):
        total = 0.0
        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                total += criterion(model(x), y).item()
        model.train()
        return total / len(val_loader)
    ```

    ## Fix safety
    The fix is unsafe: it adds `model.eval()` before the loop, and what trains the model afterwards
    must call `model.train()` itself.

    ## When not to use it
    Where dropout or batch statistics are wanted during evaluation: Monte Carlo dropout, adaptation
    at test time.

    ## References
    - [torch.nn.Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
    - [Locally disabling gradients: evaluation mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
    """

    code = "TLM001"
    severity = Severity.ERROR
    scout = (
        SWITCHES_TO_EVALUATION
        | MEASURES
        | TRAINS_BY_FLAG
        | EVALUATES
        & (
            part_of_identifier("no_grad", "inference_mode", "set_grad_enabled")
            | KEEPS_SCORES
            | text(".train(", '"train"', "'train'")
        )
    )
    help = "call `model.eval()` before the loop, and `model.train()` before training goes on"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for blame in wrong_evaluations(file, self.scout, _is_in_train_mode):
            yield self.report(blame.node, _message(blame), repair=_repair(blame))


def _is_in_train_mode(found: ForwardPass, starts_here: bool) -> bool | None:
    loop, moment = evaluation_loop(found), found.moment
    if loop is None or not _may_care(found):
        return None
    if moment.mode == EVAL:
        return False
    is_whole = starts_here and loop.file is found.event.file and not _is_set_up_for_it(found)
    is_sure = moment.mode == TRAIN or (moment.mode == ENTRY and is_whole)
    is_meant = (
        moment.gradients is False
        or moment.switch is not None
        or evaluation_phase(found) is not None
        or (found.is_switched_off and is_mode_sensitive(found.model) is True)
        or (is_mode_sensitive(found.model) is True and scores_held_out_data(loop))
    )
    return True if is_sure and is_meant and not _is_on_purpose(found) else None


def _may_care(found: ForwardPass) -> bool:
    """Whether modes differ for the model; of one whose class is in sight, that must be seen.

    So it must of a library's layer that a network calls as a part of itself.
    """
    cares = is_mode_sensitive(found.model)
    if found.moment.switch is None and _is_made_in_eval_mode(found.model):
        return False
    is_seen = isinstance(unwrapped(found.model), Instance) or _is_part(found)
    return cares or (cares is None and not is_seen)


def _is_made_in_eval_mode(model: Value) -> bool:
    """Whether a network's constructor calls ``self.backbone.eval()``, and no other part cares."""
    inner = unwrapped(model)
    constructor = inner.definition.method("__init__") if isinstance(inner, Instance) else None
    if constructor is None:
        return False
    assert isinstance(inner, Instance)
    asleep = {
        call.func.value.attr
        for call in constructor.calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "eval"
        and isinstance(call.func.value, ast.Attribute)
    }
    others = (part for name, part in inner.members.items() if name not in asleep)
    return bool(asleep) and not any(is_mode_sensitive(part) for part in others)


def _is_part(found: ForwardPass) -> bool:
    """Whether a method of a network makes the forward pass, with a layer of its own."""
    node, file = found.event.node, found.event.file
    function = file.index.enclosing_function(node)
    owner = file.definition(function).owner if function is not None else None
    is_own = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")
    return is_own and owner is not None and owner.is_module


def _is_set_up_for_it(found: ForwardPass) -> bool:
    """Whether the object whose method starts the run has switched modes when it was made."""
    root = found.run.root
    if root is None or root.owner is None:
        return False
    return any(
        _SETS_UP.match(name) and _SWITCHES.search(method.file.segment(method.node))
        for ancestor in root.owner.ancestors()
        for name, method in ancestor.own_methods.items()
        if method is not root
    )


def _is_on_purpose(found: ForwardPass) -> bool:
    if _GENERATOR.search(found.model.hint):
        return True
    file = found.event.file
    function = file.index.enclosing_function(found.event.node)
    if function is None:
        return False
    decorators = [item for item in function.decorator_list if not _is_of_torch(file, item)]
    may_switch = any("eval" in ast.unparse(item) for item in decorators)
    return may_switch or bool(_ON_PURPOSE.search(file.segment(function)))


def _is_of_torch(file: FileModel, decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (file.qualified(called) or "").startswith("torch.")


def _message(blame: Blame) -> str:
    name, mode = blame.found.model.hint or "model", blame.found.moment
    others = "; other callers switch to eval mode first" if blame.others_are_right else ""
    if blame.is_call:
        return f"evaluates `{name}` in train mode{others}"
    if blame.caller is not None:
        return f"`{name}` is evaluated in train mode when called from {blame.caller}{others}"
    if mode.switch is not None:
        where = place(mode.switch, blame.found.event.file)
        return f"`{name}` is evaluated in train mode, which {where} set"
    return f"`{name}` is evaluated in train mode: nothing calls `{name}.eval()`"


def _repair(blame: Blame) -> Repair | None:
    loop, call = evaluation_loop(blame.found), blame.node
    is_statement = loop is not None and isinstance(loop.node, (ast.For, ast.AsyncFor))
    elsewhere = blame.is_call or blame.caller is not None
    if elsewhere or not is_statement or not isinstance(call, ast.Call):
        return None
    assert loop is not None
    assert isinstance(loop.node, ast.stmt)
    file, model = blame.found.event.file, call.func
    switch = _switch(blame.found)
    node: ast.stmt = loop.node
    is_inside = any(item is call for item in ast.walk(node))
    if not is_inside or not is_name_chain(model):
        return None
    while isinstance(parent := file.index.parents.get(node), ast.With) and parent.body[0] is node:
        node = parent

    def add_eval(editor: Editor) -> None:
        editor.insert_before(node, f"{editor.source(model)}.{switch}")

    return Repair("switch to eval mode before the loop", Applicability.UNSAFE, add_eval)


def _switch(found: ForwardPass) -> str:
    """What sets the mode before the loop: in a loop over phases, that of each phase."""
    phase = evaluation_phase(found)
    for loop in found.moment.loops if phase else ():
        target = getattr(loop.node, "target", None)
        if loop.lap is not None and isinstance(target, (ast.Name, ast.Tuple)):
            name = target if isinstance(target, ast.Name) else target.elts[0]
            return f"train({ast.unparse(name)} != {phase!r})"
    return "eval()"
