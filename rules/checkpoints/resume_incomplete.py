from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.resuming import Resume, resumes
from trainlint.analysis.roles import Role
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, part_of_identifier, text

_CONSEQUENCES = {
    Role.OPTIMIZER: "the optimizer's momentum starts at zero",
    Role.SCHEDULER: "the learning-rate schedule starts over",
    Role.SCALER: "the gradient scaler has to find its scale again",
}


class ResumeIncomplete(Rule):
    """Training resumes from a checkpoint without the state of its optimizer or scheduler.

    ## What it does
    Where a file resumes training (the condition or path says so, or the loop goes on at the
    checkpoint's epoch), reports that no state is loaded into an optimizer, scheduler or gradient
    scaler that the file makes. A missing gradient scaler alone is reported for information.

    ## Why is this bad?
    Adam's moments are zero again and its first steps are far too large; the schedule starts over
    at the initial learning rate. The resumed run is another one than the run that stopped.

    ## Example
    ```python
    import torch

    def train(model, loader, args):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        start_epoch = 0
        if args.resume:
            checkpoint = torch.load(args.resume, map_location="cpu")
            model.load_state_dict(checkpoint["model"])
            start_epoch = checkpoint["epoch"] + 1
        for epoch in range(start_epoch, args.epochs):
            for x in loader:
                optimizer.zero_grad()
                model(x).mean().backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, args):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        start_epoch = 0
        if args.resume:
            checkpoint = torch.load(args.resume, map_location="cpu")
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            start_epoch = checkpoint["epoch"] + 1
        for epoch in range(start_epoch, args.epochs):
            for x in loader:
                optimizer.zero_grad()
                model(x).mean().backward()
                optimizer.step()
    ```

    ## When not to use it
    For fine-tuning from other weights, where a new optimizer is right.

    ## References
    - [Saving and loading a general checkpoint](https://docs.pytorch.org/tutorials/recipes/recipes/saving_and_loading_a_general_checkpoint.html)
    """

    code = "TLC006"
    severity = Severity.WARNING
    scout = (
        identifier("load_state_dict")
        & part_of_identifier("backward", "sched", "caler")
        & text("load(")
    )
    help = "save and load the `state_dict()` of everything that has one, and the epoch"

    def check(self, file: FileModel) -> Iterator[Report]:
        if file.is_unit_test:
            return
        for resume in resumes(file):
            if resume.missing:
                is_scaler_only = resume.missing == (Role.SCALER,)
                severity = Severity.INFO if is_scaler_only else self.severity
                yield self.report(resume.load, _message(resume), severity=severity)


def _message(resume: Resume) -> str:
    return "training goes on from this checkpoint, but " + ", and ".join(
        _CONSEQUENCES[role] for role in resume.missing
    )
