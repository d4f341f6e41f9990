"""The process that answers questions about a situation. It can be ended at any time, so a query
that never ends, or that needs too much memory, harms nothing.

It reads questions from its standard input and writes answers to its standard output: a line with
the task and the length, then so many bytes of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from typing import Any, BinaryIO

import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.lab.found import found
from cepheid.lab.questions import funnel, plan, why, why_not
from cepheid.lab.situations.cells import to_cells
from cepheid.lab.situations.code import code
from cepheid.lab.situations.kept_case import case_of
from cepheid.lab.situations.notation import read_events, write_events
from cepheid.lab.situations.situation import TIME, TYPE, situation_of
from cepheid.lab.words import example

TASKS = ("match", "why", "funnel", "plan", "why-not", "code", "case", "read", "write")

MEMORY = 4 << 30
"""Bytes of address space: Arrow and Numba reserve one before they need anything."""


def answer(task: str, body: bytes) -> dict[str, Any]:
    """What the page gets; `problem` is a sentence about what is wrong."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return {"problem": "that isn't JSON"}
    try:
        return _answer(task, given)
    except CepheidError as error:
        return {"problem": str(error)}
    except MemoryError:
        return {"problem": "this needs too much memory: take fewer events or a shorter window"}
    except RecursionError:
        return {"problem": "this is nested too deeply"}


def _answer(task: str, given: Any) -> dict[str, Any]:
    if task == "read":
        if not isinstance(given, dict) or not isinstance(given.get("text"), str):
            raise DataError("the events are a text")
        return {"events": to_cells(read_events(given["text"]), TIME)}
    situation = situation_of(given)
    match task:
        case "match":
            return found(situation)
        case "why":
            return why(situation)
        case "funnel":
            return funnel(situation)
        case "plan":
            return plan(situation)
        case "why-not":
            return why_not(situation, given.get("rows"))
        case "code":
            return code(situation)
        case "case":
            return {"case": case_of(situation)}
        case "write":
            options = situation.options
            names = {options.time: TIME, str(options.type): TYPE}
            table = situation.events
            table = table.rename_columns([names.get(n, n) for n in table.column_names])
            if TYPE not in table.column_names:
                table = table.append_column(TYPE, pa.repeat("event", table.num_rows))
            return {"text": write_events(table)}
        case _:
            raise DataError(f"the lab has no {task}")


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no answer
    found(example())  # what is loaded when it is first used is loaded now
    answers.write(b"\n")
    answers.flush()
    while (question := _question(sys.stdin.buffer)) is not None:
        task, body = question
        try:
            written = json.dumps(answer(task, body), default=str, allow_nan=False)
        except Exception:
            traceback.print_exc()
            written = json.dumps({"problem": "the lab failed at this; its terminal says how"})
        reply = written.encode()
        answers.write(b"%d\n" % len(reply) + reply)
        answers.flush()


def _question(source: BinaryIO) -> tuple[str, bytes] | None:
    head = source.readline().split()
    if len(head) != 2:
        return None
    return head[0].decode(), source.read(int(head[1]))


if __name__ == "__main__":
    main()
