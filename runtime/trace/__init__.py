"""What one run of the script looked like: plain data, no tensors, safe to write as JSON.

Instruments fill it, checks read it. Every number is a Python number; every reference to another
record is its position in the list that holds it.
"""

from __future__ import annotations

from trainlint.runtime.trace.data import LoaderPass, Overlap
from trainlint.runtime.trace.forward import (
    ActivationFacts,
    DropoutCall,
    LossCall,
    ModuleFacts,
    RootCall,
    TensorFacts,
    WeightHistogram,
)
from trainlint.runtime.trace.ranks import CollectiveCall
from trainlint.runtime.trace.run import Ending, Trace
from trainlint.runtime.trace.source import Place
from trainlint.runtime.trace.start import Overwritten
from trainlint.runtime.trace.state import (
    Alias,
    BadOperation,
    ExtraForward,
    MemoryFacts,
    RetainedGraph,
    SavedState,
)
from trainlint.runtime.trace.stored import from_json, to_json
from trainlint.runtime.trace.training import (
    Backward,
    Event,
    GroupFacts,
    OptimizerFacts,
    ParamFacts,
    SchedulerFacts,
    Step,
)

__all__ = [
    "ActivationFacts",
    "Alias",
    "Backward",
    "BadOperation",
    "CollectiveCall",
    "DropoutCall",
    "Ending",
    "Event",
    "ExtraForward",
    "GroupFacts",
    "LoaderPass",
    "LossCall",
    "MemoryFacts",
    "ModuleFacts",
    "OptimizerFacts",
    "Overlap",
    "Overwritten",
    "ParamFacts",
    "Place",
    "RetainedGraph",
    "RootCall",
    "SavedState",
    "SchedulerFacts",
    "Step",
    "TensorFacts",
    "Trace",
    "WeightHistogram",
    "from_json",
    "to_json",
]
