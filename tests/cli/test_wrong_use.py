"""Every wrong use of a command exits with 2 and a hint in command-line words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import run, unwrapped

QUERY = "PATTERN A a ; B b WHERE b.x > a.x + :step WITHIN 10 RETURN a.x AS x"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "q.cep").write_text(QUERY)
    (tmp_path / "e.csv").write_text("ts,type,x,list\n1,A,1.5,a\n2,B,2.5,b\n")
    (tmp_path / "binary.cep").write_bytes(b"\x00\xff\xfe")
    (tmp_path / "bad.json").write_text('{"rates": 3')
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)


COMMON = ("--time", "ts", "--type", "type")
EVENTS = ("-i", "e.csv", "--time", "ts", "--type", "type")
GIVEN = (*EVENTS, "-p", "step=0")
CALLED = ("run", "q.cep", *GIVEN)


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ((*CALLED, "--time", "tss"), "there is no column `tss` (--time); did you mean `ts`?"),
        ((*CALLED, "--time", "x"), "the time column `x` is double; it must be a timestamp"),
        ((*CALLED, "--time", "x"), "cast it to an integer, and say what one is with --unit"),
        ((*CALLED, "--time", "list"), "the time column `list` is text, such as 'a'"),
        ((*CALLED, "--runtime", "spark", "--threads", "2"), "--threads is for a run in process"),
        (("analyze", "q.cep", *GIVEN, "-o", "x.csv"), "statistics are .json, not x.csv"),
        ((*CALLED, "--type", "typ"), "there is no column `typ` (--type); did you mean `type`?"),
        ((*CALLED, "--type", "x"), "the type column `x` is double; it must be a string"),
        ((*CALLED, "--tie", "tie"), "there is no column `tie` (--tie); there are ts, type, x"),
        ((*CALLED, "--unit", "hours"), "'hours' is not one of 'us', 'ms'"),
        (("run", "q.cep", *EVENTS), "give it one: --param step=…"),
        ((*CALLED, "-p", "stop=1"), "--param stop: no query has a parameter `:stop`; did you mea"),
        ((*CALLED, "-p", "step"), "'step' isn't like --param limit=5"),
        (("run", "q.cep", "-i", "e.csv", "--time", "ts", "-p", "step=0"), "as in --type name"),
        ((*CALLED, "--plan", "(a b)", "--engine", "nfa"), "but --engine nfa asks for aut"),
        ((*CALLED, "--plan", "(a"), "the plan '(a' lacks a closing parenthesis"),
        ((*CALLED, "--stats", "bad.json"), "--stats bad.json: statistics must be JSON"),
        (("run", "q.cep", "-i", "no.csv", "--time", "ts", "-p", "step=0"), "no.csv: No such file"),
        (("run", "q.cep", "-i", "folder", "--time", "ts", "-p", "step=0"), "there is no file in"),
        (("run", "q.cep", "-i", "s3a://b/e.csv", "--time", "ts", "-p", "step=0"), "only Spark rea"),
        (("run", "q.cep", "-i", "a=e.csv", "-i", "b=e.csv", *COMMON, "-p", "step=0"), "leave out"),
        (("run", "binary.cep", *EVENTS), "binary.cep: the file can't be read: it isn't UTF-8 text"),
        (("run", "binary.cep", "q.cep", *GIVEN), "binary.cep: this isn't a query: the file isn't"),
        (("run", "folder", *EVENTS), "there are no rules in this folder"),
        (("run", "no.cep", *EVENTS), "'no.cep' does not exist"),
        (
            ("run", "q.cep", "-i", "no.csv", *COMMON, "-p", "step=0", "--runtime", "spark"),
            "No such",
        ),
        (("explain", "q.cep", "--stats", "bad.json"), "--stats bad.json: statistics must be JSON"),
        (("explain", "q.cep", "-p", "stop=1"), "--param stop: no query has a parameter `:stop`"),
        (("explain", "q.cep", *GIVEN, "--time", "tss"), "there is no column `tss` (--time)"),
        (("explain", "binary.cep"), "binary.cep: the file can't be read"),
        (("analyze", "q.cep", *GIVEN, "--time", "tss"), "there is no column `tss` (--time)"),
        (("analyze", "q.cep", *GIVEN, "-p", "stop=1"), "no query has a parameter `:stop`"),
        (("analyze", "binary.cep", *EVENTS), "binary.cep: this isn't a query"),
        (("check", "q.cep", *GIVEN, "--time", "tss"), "there is no column `tss` (--time)"),
        (("check", "q.cep", "-i", "no.csv"), "no.csv: No such file or folder"),
        (("check", "binary.cep"), "binary.cep: the file can't be read"),
        (("generate", "rfid", "--rows", "9", "-o", "x.csv", "--stolen", "1"), "--stolen, --mispl"),
        (("generate", "stocks", "--rows", "9", "-o", "x.csv", "--rate", "IBM"), "--rate IBM=100"),
    ],
)
def test_wrong_use(command: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command) == 2
    error = unwrapped(capsys.readouterr().err)
    assert hint in error
    assert "Traceback" not in error and not re.search(r"\b(time|type|tie|params|engine)=\W", error)
    assert not Path("x.csv").exists()
