"""`python -m benchmarks.rules.process MEASURED FOLDER`: figures of a fresh process, as JSON."""

from __future__ import annotations

import ctypes
import gc
import json
import pickle
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Record
from cepheid.engine.merged.machine import Machine
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.workloads import cayuga

OPTIONS = Options("ts")


def compiling(folder: Path) -> Record:
    """Seconds of processor time to load a folder of rules, and to compile them."""
    begin = time.process_time()
    rules = RuleSet.load(folder)
    loaded = time.process_time()
    compiled = compile_rules(rules.templates, cayuga.SCHEMA, OPTIONS)
    done = time.process_time()
    return {
        "rules": len(rules),
        "alone": len(compiled.alone),
        "loading": loaded - begin,
        "compiling": done - loaded,
    }


def memory(folder: Path) -> Record:
    """Bytes of a rule: resident, once all is ready to match; and of what is held, as it would be
    sent elsewhere. A set of ten rules has loaded all code before."""
    schema = cayuga.SCHEMA
    few = RuleSet.load(folder)
    few = RuleSet(tuple(t.where(_first(len(t), 10)) for t in few.templates))
    ready(few, schema)
    del few
    before = resident()
    rules = RuleSet.load(folder)
    held = ready(rules, schema)
    after = resident()
    return {
        "rules": len(rules),
        "resident": (after - before) / len(rules),
        "pickled": len(pickle.dumps((rules, held[0]))) / len(rules),
    }


def _first(rows: int, count: int) -> pa.ChunkedArray:
    return pa.chunked_array([[n < count for n in range(rows)]])


def ready(rules: RuleSet, schema: pa.Schema) -> tuple[CompiledRules, list[Machine]]:
    compiled = compile_rules(rules.templates, schema, OPTIONS)
    return compiled, [Machine(group.merged, schema) for group in compiled.groups]


def resident() -> int:
    """Bytes, once all that is free has been given back."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def starting(folder: Path) -> Record:
    """Seconds of this process until rules of a folder have been matched with some events."""
    events = pq.read_table(folder.parent / "events.parquet")
    found = RuleSet.load(folder).match(events, OPTIONS)
    return {"matches": found.num_rows, "seconds": time.process_time()}


MEASURED = {"compiling": compiling, "memory": memory, "starting": starting}

if __name__ == "__main__":
    print(json.dumps(MEASURED[sys.argv[1]](Path(sys.argv[2]))))
