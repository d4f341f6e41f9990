"""docs/sigma.md is true: its files are written, its command and its code run."""

from __future__ import annotations

import contextlib
import io
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from cepheid.cli import main
from tests.docs.blocks import blocks

BLOCKS = blocks("docs/sigma.md")


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = 0
    for block, after in pairwise(BLOCKS):
        kind, _, name = block.kind.partition(" ")
        if kind == "yaml":
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif kind == "console":
            command, _, printed = block.text.removeprefix("$ cepheid ").partition("\n")
            with pytest.raises(SystemExit) as exit:
                main(shlex.split(command))
            captured = capfd.readouterr()
            assert exit.value.code == 0 and captured.out + captured.err == printed
            assert (tmp_path / "desk" / "guessed.cep").read_text(encoding="utf-8") == after.text
            ran += 1
        elif kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block.text, block.place, "exec"), names)
            assert output.getvalue() == after.text, block.place
            ran += 1
    assert ran == 3
