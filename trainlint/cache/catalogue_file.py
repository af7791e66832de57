"""Which rules are installed, without importing them; and the fingerprint of all that code."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trainlint.cache.file_states import content_hash, is_settled
from trainlint.cache.folder import CacheFolder
from trainlint.catalogue import RuleFacts, facts_of, foreign_files, installed_rules
from trainlint.finding import Severity
from trainlint.offers import offers

_NAME = "rules"
_CODE = "code"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The installed rules. A cached answer is worth nothing under another ``fingerprint``."""

    rules: tuple[RuleFacts, ...]
    fingerprint: str


def load_catalogue(folder: CacheFolder | None) -> Catalogue:
    """The installed rules: from the cache if their code has not changed, else by importing them.

    Raises:
        RuleLoadError: two rules share a code or a name.
    """
    if folder is None:
        return Catalogue(facts_of(installed_rules()), "")
    own_code = _own_code(folder)
    cached = _read(folder.read(_NAME), own_code)
    if cached is not None:
        return cached
    rules = installed_rules()
    foreign = foreign_files(rules)
    facts = facts_of(rules)
    foreign_code = _contents(foreign)
    document = {
        "code": own_code,
        "foreign": foreign,
        "foreign_code": foreign_code,
        "rules": [[r.code, r.name, r.family, r.severity.value, r.preview] for r in facts],
    }
    folder.write(_NAME, document)
    return Catalogue(facts, own_code + foreign_code)


def _read(document: dict[str, Any] | None, own_code: str) -> Catalogue | None:
    try:
        if document is None or document["code"] != own_code:
            return None
        if document["foreign_code"] != _contents(document["foreign"]):
            return None
        rules = tuple(
            RuleFacts(code, name, family, Severity(severity), preview)
            for code, name, family, severity, preview in document["rules"]
        )
        return Catalogue(rules, own_code + document["foreign_code"])
    except (KeyError, TypeError, ValueError):
        return None


def _own_code(folder: CacheFolder) -> str:
    """Changes with the interpreter, our code, and which packages offer rules.

    The code is read again only where its times and sizes are not those of the last run: contents
    decide, so that a cache outlives an installation of the same version.
    """
    packages = [importlib.import_module(name) for name in ("trainlint", "trainlint.rules")]
    places = [place for package in packages for place in package.__path__]
    files = [file for place in places for file in _python_files(place)]
    around = [sys.version, *offers()]
    statuses = [(file, os.stat(file)) for file in files]
    times = [f"{file} {status.st_size} {status.st_mtime_ns}" for file, status in statuses]
    stamp = content_hash("\n".join([*around, *times]).encode())
    known = folder.read(_CODE)
    if known is not None and known.get("stamp") == stamp and isinstance(known.get("code"), str):
        return str(known["code"])
    code = content_hash("\n".join([*around, _contents(files)]).encode())
    newest = max(status.st_mtime_ns for _, status in statuses)
    if is_settled(newest, time.time_ns()):
        folder.write(_CODE, {"stamp": stamp, "code": code})
    return code


def _python_files(folder: str) -> list[str]:
    found = [
        os.path.join(parent, name)
        for parent, folders, names in os.walk(folder)
        for name in names
        if name.endswith(".py")
    ]
    return sorted(found)


def _contents(files: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            data = b"absent"
        digest.update(b"%d\n" % len(data))
        digest.update(data)
    return digest.hexdigest()
