"""docs/rules.md is true: its files are written, its code run, and what is printed compared."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from cepheid.cli import main
from cepheid.cli.stream.stream_rules import LATER, change_text
from cepheid.options import Options
from cepheid.rules import LiveRules, Watch
from tests.docs.blocks import ROOT, Block, blocks

PAGE = "docs/rules.md"
BLOCKS = blocks(PAGE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page, and events that they are for."""
    for block in BLOCKS:
        language, _, name = block.kind.partition(" ")
        if language in ("cep", "csv"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)
    events = {
        "ts": pa.array([0], pa.timestamp("us")),
        "kind": ["Auth"],
        "card": [1],
        "amount": [1.0],
        "merchant": ["shop"],
    }
    pa.parquet.write_table(pa.table(events), tmp_path / "cards.parquet")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_a_stream_tells_of_its_rules(folder: Path) -> None:
    told: list[str] = []
    columns = {"ts": pa.timestamp("us"), "kind": pa.string(), "card": pa.int64(),
               "amount": pa.float64(), "country": pa.string()}  # fmt: skip
    watch = Watch(
        "rules/",
        LiveRules("state/rules"),
        pa.schema(columns),
        Options("ts", type="kind"),
        tell=lambda change: told.append(change_text(change, LATER)),
    )
    watch.look()
    large, cards = folder / "rules/large.csv", folder / "rules/cards.cep"
    large.write_text(large.read_text().replace("2000,DE", "1800,DE") + "large-it,2200,IT,30,low\n")
    watch.look()
    cards.write_text(cards.read_text().replace("b.amount > 500", "b.amuont > 500"))
    watch.look()
    (printed,) = (b for b in BLOCKS if b.kind == "text" and b.text.startswith("rules version"))
    assert "\n".join(told) + "\n" == printed.text


def of_kind(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


@pytest.mark.usefixtures("folder")
def test_the_code_prints_what_the_page_says() -> None:
    shared: dict[str, Any] = {}  # a block goes on where the one before it stopped
    for code, printed in pairwise(BLOCKS):
        if code.kind != "python":
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code.text, code.place, "exec"), shared)
        assert printed.kind == "text"
        assert output.getvalue() == printed.text, code.place


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("block", of_kind("console"), ids=str)
def test_the_commands_print_what_the_page_says(
    block: Block, capfd: pytest.CaptureFixture[str]
) -> None:
    for command in block.text.split("$ cepheid ")[1:]:
        words, _, printed = command.partition("\n")
        with pytest.raises(SystemExit) as exit:
            main(shlex.split(words))
        captured = capfd.readouterr()
        wrong = "wrong/" in words
        assert exit.value.code == (2 if wrong else 0)
        # Of what goes well, stderr has the progress.
        assert plain((captured.err if wrong else "") + captured.out) == plain(printed)


def plain(printed: str) -> list[str]:
    """The lines, without what differs from run to run."""
    lines = [line.rstrip() for line in printed.splitlines()]
    return [re.sub(r"(?<=^ (seconds |events/s) ).*", "…", line) for line in lines]


def test_no_block_is_left_out() -> None:
    kinds = [block.kind.split(" ")[0] for block in BLOCKS]
    assert {*kinds} == {"cep", "csv", "python", "text", "console"}
    assert kinds.count("python") == 17
