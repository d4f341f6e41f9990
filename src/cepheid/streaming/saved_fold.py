"""A fold of answers as bytes: its open groups as rows of Arrow, and how far it has come."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from cepheid.answers import AnswerFold
from cepheid.answers.answer_fold import FoldProgress
from cepheid.streaming.cells import arrow_bytes, framed, table_of, unframed

_LENGTH = struct.Struct("<I")
_WHAT = "the saved state of answers"


def fold_bytes(fold: AnswerFold, notes: Mapping[str, Any]) -> bytes:
    """The fold, with notes for whoever reads it."""
    parts, progress = fold.save()
    text = json.dumps({**notes, "progress": asdict(progress)}).encode()
    return framed(_LENGTH.pack(len(text)) + text + arrow_bytes(parts.combine_chunks()))


def fold_of(data: bytes) -> tuple[Mapping[str, Any], pa.Table, FoldProgress]:
    """The notes, and what a new fold needs to go on."""
    body = unframed(data, _WHAT)
    (length,) = _LENGTH.unpack_from(body)
    begin = _LENGTH.size + length
    notes = json.loads(bytes(body[_LENGTH.size : begin]))
    return notes, table_of(body[begin:]), FoldProgress(**notes["progress"])
