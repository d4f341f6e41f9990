"""The tables of the grammar are kept from process to process, where they can be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from cepheid.language.parser import parse
print(parse("PATTERN A a ; B b WITHIN 10 secs").within)
"""


def parsed(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "CEPHEID_CACHE": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_they_are_written_once_and_read_then(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    first = parsed(folder)
    kept = folder / "grammar.pickle"
    written = kept.stat().st_mtime_ns
    assert parsed(folder) == first
    assert kept.stat().st_mtime_ns == written


@pytest.mark.parametrize("content", [b"", b"nothing of the kind"])
def test_a_file_that_cannot_be_read_is_written_anew(content: bytes, tmp_path: Path) -> None:
    kept = tmp_path / "grammar.pickle"
    kept.write_bytes(content)
    assert "amount=10" in parsed(tmp_path)
    assert len(kept.read_bytes()) > 1000


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "amount=10" in parsed(tmp_path / "file" / "folder")
