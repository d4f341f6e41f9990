"""What a set of rules takes before its first event: time to load and compile, and memory.

Each is measured in a process of its own (`process.py`), so that nothing is warm but kernels on the
disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.report import Record, Verdict, provenance
from benchmarks.rules.figures import Say, Size
from benchmarks.rules.running import SEED
from benchmarks.tree import HERE
from cepheid.workloads import cayuga

RULES, START = 100_000, 1_000
WRITTEN = (1_000, 100_000)
EVENTS = 1_000


def measure(size: Size, say: Say) -> dict[str, Record]:
    """The figures of each process, by what they are of."""
    found: dict[str, Record] = {}
    with tempfile.TemporaryDirectory(prefix="cepheid-rules-") as place:
        folder = Path(place)
        pq.write_table(cayuga.generate(EVENTS, SEED), folder / "events.parquet")
        say("rules of a template")
        templates = write_template(folder / "templates", RULES // size.rules)
        found["template"] = in_process("compiling", templates)
        found["memory"] = in_process("memory", templates)
        for count in (n // size.rules for n in WRITTEN):
            say(f"{count:,} written queries")
            written = write_queries(folder / f"written-{count}", count)
            found[f"written, {count:,}"] = in_process("compiling", written)
        say("cold start")
        start = write_template(folder / "start", START // size.rules)
        in_process("starting", start)
        found["start"] = in_process("starting", start)
        bare = str(folder / "cache")
        found["start without kernels"] = in_process("starting", start, CEPHEID_CACHE=bare)
    return found


def in_process(measured: str, folder: Path, **environment: str) -> Record:
    command = [sys.executable, "-m", "benchmarks.rules.process", measured, str(folder)]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, cwd=HERE.parent, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{measured} failed:\n{done.stderr}")
    figures: Record = json.loads(done.stdout)
    return figures


def write_template(folder: Path, rules: int) -> Path:
    """A folder with the query, and the table of its parameters."""
    folder.mkdir()
    (folder / "Filter.cep").write_text(f"INTO Filter\n{cayuga.TEMPLATES['Filter']}\n")
    pq.write_table(cayuga.rules(rules, SEED), folder / "Filter.parquet")
    return folder


def write_queries(folder: Path, rules: int) -> Path:
    """A folder with a file of queries, each with its constants and none of what it doesn't name."""
    folder.mkdir()
    rows = cayuga.rules(rules, SEED).to_pylist()
    texts = (f"INTO rule{n}\n{written(row)}\n" for n, row in enumerate(rows))
    (folder / "rules.cep").write_text("\n".join(texts))
    return folder


def written(row: Mapping[str, Any]) -> str:
    """A Filter rule as one would write it."""
    primary = next(f"d{n} = {row[f'p{n}']}" for n in range(4) if row[f"p{n}"] is not None)
    conditions = [f"{event}.{primary}" for event in "axbyc"]
    for event in "abc":
        for n in range(4):
            value, low, high = (row[f"{event}_{name}{n}"] for name in ("d", "low", "high"))
            if value is not None:
                conditions.append(f"{event}.d{n} = {value}")
            if low is not None:
                conditions.append(f"{event}.c{n} BETWEEN {low} AND {high}")
    gaps = [f"{b}.ts <= {a}.ts + {cayuga.DURATION}" for a, b in ("ab", "bc")]
    where = " AND ".join([*conditions, *gaps])
    return (
        f"PATTERN a ; !x ; b ; !y ; c\nWHERE {where}\nWITHIN {2 * cayuga.DURATION + 1}\n"
        "RETURN a.ts AS a, b.ts AS b, c.ts AS c"
    )


def verdicts(found: Mapping[str, Record]) -> Iterator[Verdict]:
    for name, figures in found.items():
        if name == "template" or name.startswith("written"):
            seconds = figures["loading"] + figures["compiling"]
            rate = figures["rules"] / seconds
            if name == "template":
                text = f"{figures['rules']:,} rules of a template load and compile in 60 s"
                yield Verdict(text, seconds <= 60, f"{seconds:.1f} s", must=True)
            else:
                text = f"{figures['rules']:,} written queries load and compile at that pace"
                detail = f"{seconds:.1f} s, {rate:,.0f} a second"
                yield Verdict(text, rate >= RULES / 60, detail, figures["rules"] >= RULES)
    resident = found["memory"]["resident"]
    yield Verdict(
        "an idle rule takes at most 2 KB", resident <= 2_048, f"{resident:,.0f} bytes", True
    )
    for name, others in (("start", ""), ("start without kernels", ", no kernel on the disk,")):
        seconds = found[name]["seconds"]
        text = f"cold start of {START:,} rules{others} and {EVENTS:,} events in 10 s"
        yield Verdict(text, seconds <= 10, f"{seconds:.1f} s", must=not others)


def record(found: Mapping[str, Record], quick: bool) -> Record:
    shown = {
        "loading": "s to load",
        "compiling": "s to compile",
        "seconds": "s in all",
        "resident": "bytes a rule, resident",
        "pickled": "bytes a rule, pickled",
    }
    rows = [[name, *(_cell(measured, key) for key in shown)] for name, measured in found.items()]
    head = ["set", *shown.values()]
    return {
        **provenance(quick),
        "name": "size",
        "title": "Rules before the first event: time and memory",
        "tables": [{"title": "processor time and memory", "head": head, "rows": rows}],
        "claims": [asdict(verdict) for verdict in verdicts(found)],
        "figures": dict(found),
    }


def _cell(figures: Record, key: str) -> str:
    value = figures.get(key)
    return "" if value is None else f"{value:,.0f}" if value > 100 else f"{value:.2f}"
