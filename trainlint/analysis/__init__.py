"""The model of training code that all rules read."""

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.project import Project
from trainlint.analysis.source import SourceError, SourceFile

__all__ = [
    "ClassDefinition",
    "FileModel",
    "FunctionDefinition",
    "Project",
    "SourceError",
    "SourceFile",
]
