"""What would be silent is logged under `cepheid`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.kernels import compile as kernels

COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string()})


def test_the_plan_and_rejected_rows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "cepheid")
    session = cep.open("PATTERN A a ; B b WITHIN 5", COLUMNS, time="ts", type="type")
    session.push(pa.table({"ts": [4, 5], "type": ["A", "B"]}, COLUMNS))
    assert not [r for r in caplog.messages if "rejected" in r]
    session.push(pa.table({"ts": [1, None], "type": ["A", "B"]}, COLUMNS))
    assert any(message.startswith("plan: ") for message in caplog.messages)
    assert "rows rejected so far: 1 late, 1 without a time" in caplog.messages
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_kernels_that_must_be_compiled(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path))
    caplog.set_level("INFO", "cepheid")
    kernels.load("@jit\ndef kernel(x):\n    return x + 123456\n", jit=True)
    assert any("is compiled at its first call" in message for message in caplog.messages)
