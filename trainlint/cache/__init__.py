"""Remembers the answers for unchanged files between runs.

An answer holds as long as nothing that it was made from has changed: the file's content, the
rules and their code, the interpreter, and the other files that a rule looked at. Nothing here
imports a rule, the analysis, or LibCST.
"""

from trainlint.cache.catalogue_file import Catalogue, load_catalogue
from trainlint.cache.file_states import FileStates, content_hash
from trainlint.cache.folder import CacheFolder
from trainlint.cache.project_caches import ProjectCaches
from trainlint.cache.results import ResultCache

__all__ = [
    "CacheFolder",
    "Catalogue",
    "FileStates",
    "ProjectCaches",
    "ResultCache",
    "content_hash",
    "load_catalogue",
]
