"""One run at a time on a checkpoint.

Spark notices two only when the second has written what the first was about to, and then one of them
fails. A lock on a file in the checkpoint refuses the second at its start. The system gives the lock
up with the process that has it, however that ends, so there is never one to clear away.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cepheid.errors import OptionError

LOCK = "running.json"


@contextmanager
def locked(checkpoint: Path) -> Iterator[None]:
    """Lock the checkpoint for the block; OptionError if another run has it."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks: there, Spark alone notices
        yield
        return
    with (checkpoint / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(
                f"{checkpoint} is the checkpoint of a run that hasn't ended{_holder(checkpoint)}: "
                "stop that run first, or start with another checkpoint and another output"
            ) from None
        file.truncate(0)
        started = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        json.dump({"process": os.getpid(), "host": socket.gethostname(), "since": started}, file)
        file.flush()
        yield


def _holder(checkpoint: Path) -> str:
    try:
        known = json.loads((checkpoint / LOCK).read_text(encoding="utf-8"))
        return f" (process {known['process']} on {known['host']}, since {known['since']})"
    except (OSError, ValueError, KeyError):
        return ""  # it has just begun
