"""How the command line ends when something goes wrong: a message, an exit code, no traceback."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import FrameType
from typing import Any

from typer.core import TyperGroup

from cepheid.cli.output.command_words import in_command_words
from cepheid.errors import (
    CepheidError,
    ExtraError,
    OptionError,
    PlanError,
    QueryError,
    RuleSetError,
    StreamError,
    UnsupportedError,
)
from cepheid.spark.streaming.status.outcome import failure

FAILED = 1
USED_WRONGLY = 2
SET_ASIDE = 3
"""A stream is done, but files couldn't be read, or none of its events could be matched."""

INTERRUPTED = 130
"""The exit code of a process ended by Ctrl-C: 128 plus the signal's number."""

TERMINATED = 143

_WRONG = (
    QueryError,
    RuleSetError,
    PlanError,
    UnsupportedError,
    OptionError,
    ExtraError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_NO_JAVA = (
    "Spark's Java process has ended or doesn't answer: it may have run out of memory. Start the "
    "command again; a stream continues where it stopped"
)
_PAUSE = 0.1
"""Seconds after which a signal comes again whose exception was dropped."""

_comes_again = threading.Event()

_WHOLE = "(CEPHEID_DEBUG=1 in the environment shows the traceback)"


@contextmanager
def exit_cleanly() -> Iterator[None]:
    """Turn exceptions from the block into a message on stderr and an exit code.

    CEPHEID_DEBUG in the environment lets the exception through.
    """
    try:
        yield
    except Exception as error:
        if _comes_again.is_set():  # this error follows from the one that was dropped
            time.sleep(5 * _PAUSE)
        if os.environ.get("CEPHEID_DEBUG"):
            raise
        print(message(error), file=sys.stderr)
        sys.exit(exit_code(error))


class Interruptible(TyperGroup):
    """Commands that Ctrl-C ends with one line; typer would catch it outside of them."""

    def invoke(self, ctx: Any) -> Any:
        with ended_by_signals():
            return super().invoke(ctx)


class Terminated(KeyboardInterrupt):
    """Raised for SIGTERM. An interrupted call of Spark's cleans up only after a
    KeyboardInterrupt."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM leave nothing of the block half done, and end the process with one
    line."""
    try:
        with raised_by(signal.SIGINT, KeyboardInterrupt), raised_by(signal.SIGTERM, Terminated):
            yield
    except Terminated:
        print("terminated", file=sys.stderr)
        sys.exit(TERMINATED)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


@contextmanager
def raised_by(number: signal.Signals, error: type[BaseException]) -> Iterator[None]:
    """Let a signal raise this error in the block, and silence logs from then on. One that is
    ignored, as in the background of a shell script, stays so.

    C code that calls Python drops what is raised there, such as Numba's compiler, or whatever ends
    the life of an object. The signal then comes again a moment later.
    """
    if signal.getsignal(number) is signal.SIG_IGN:
        yield
        return
    before, hook = signal.getsignal(number), sys.unraisablehook

    def end(number: int, frame: FrameType | None) -> None:
        if not os.environ.get("CEPHEID_DEBUG"):
            logging.disable(logging.CRITICAL)
        raise error

    def repeat(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, error):
            hook(dropped)
            return
        _comes_again.set()
        threading.Timer(_PAUSE, os.kill, (os.getpid(), number)).start()

    signal.signal(number, end)
    sys.unraisablehook = repeat
    try:
        yield
    finally:
        signal.signal(number, before)
        sys.unraisablehook = hook
        _comes_again.clear()


def exit_code(error: Exception) -> int:
    """2 if the command can't be run as it was given, 1 if running it failed."""
    return USED_WRONGLY if isinstance(error, _WRONG) else FAILED


def message(error: Exception) -> str:
    """The printed text of an error, with the option names of the command line."""
    return in_command_words(_text(error))


def _text(error: Exception) -> str:
    match error:
        case QueryError() | RuleSetError():
            return str(error)
        case CepheidError():
            return f"error: {error}"
        case _ if _has_lost_java(error):
            return f"error: {_NO_JAVA}\n{_WHOLE}"
        case OSError(strerror=str(reason), filename=str(name)):
            return f"error: {name}: {reason}"
        case _ if not isinstance(known := failure(error), StreamError):
            return f"error: {known}"  # raised on a worker
        case _ if type(error).__module__.startswith(("pyspark.", "py4j.")):
            return f"error: {known}\n{_WHOLE}"
        case _:
            lines = str(error).strip().splitlines()
            first = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
            return f"error: {first}\n{_WHOLE}"


def _has_lost_java(error: Exception) -> bool:
    """Whether the JVM no longer answered. py4j raises exceptions of its own for that, or lets those
    of the socket through."""
    match type(error).__name__:
        case "Py4JNetworkError":
            return True
        case "Py4JError":  # one that Java raised has more to say
            return re.fullmatch(r"An error occurred while calling \S+", str(error)) is not None
    frames = (frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__))
    return isinstance(error, ConnectionError) and any("py4j" in name for name in frames)
