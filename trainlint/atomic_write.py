"""Replaces the content of a source file in one step."""

from __future__ import annotations

import contextlib
import os


def replace_content(path: str, data: bytes) -> None:
    """Give the file new content, and leave its mode and owner as they are.

    Whoever reads the file sees the old content or the new, never a part. A link is followed.

    Raises:
        OSError: the file cannot be written; it is unchanged.
    """
    import tempfile

    target = os.path.realpath(path)
    status = os.stat(target)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".trainlint-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, status.st_mode & 0o7777)
        if hasattr(os, "chown"):
            with contextlib.suppress(PermissionError):
                os.chown(temporary, status.st_uid, status.st_gid)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
