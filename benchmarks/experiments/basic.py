"""SASE's basic sequence scan and construction (3.2): an NFA and its runtime stack.

Every event gets a cell with an instance of each state that is active after it; an instance points
to the one or two that it came from: itself one event earlier (the `*` loop), and the state before
(the transition). An event that reaches the accepting state starts a single depth-first search back
along the pointers, which visits each instance of the window once: O(2LW), as in the paper. What it
collects, the transitions of each state, is then put together to sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

import cepheid as cep
from benchmarks.cases import Workload
from benchmarks.experiments.experiment import Found, Program

Ints = NDArray[np.int64]

CAPACITY = 1 << 14
"""Sequences after which the output is dropped."""

CELLS = 1 << 18
"""Cells of the runtime stack; it is a ring, which must be longer than a window and a batch."""

ALL_CELLS = 1 << 20
"""Cells where no window lets old ones go: the events of the longest run."""


def basic(window_in_search: bool = True) -> Program:
    """The search stops at the window's edge, or each sequence is looked at when it is complete
    (the window operator WD above SSC)."""

    def program(
        workload: Workload,
        options: Mapping[str, Any],
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
    ) -> Found:
        compiled = options.get("jit", True)
        scan = _scan if compiled else _scan.py_func
        bound = cep.Query(workload.query).bind(schema, **workload.columns)
        assert bound.window is not None
        names = {v.types[0]: n for n, v in enumerate(bound.variables.values(), 1)}
        cells, states = CELLS if window_in_search else ALL_CELLS, len(names) + 1
        # By state and cell: the instances that this one came from, and whether it was visited.
        loops, transitions = (np.full((states, cells), -1, np.int64) for _ in range(2))
        visited = np.full((states, cells), -1, np.int64)
        time = np.zeros(cells, np.int64)
        # By state: the cells of the transitions that a search has found.
        found = np.zeros((states, cells), np.int64)
        pending = np.zeros(cells, np.int64)
        out = np.zeros((states, CAPACITY), np.int64)
        total = at = 0
        inside = 0.0
        for batch in batches:
            column = batch.column("type")
            levels = np.array([names.get(n, 0) for n in column.dictionary.to_pylist()])
            level = levels[column.indices.to_numpy()]
            began = process_time()
            total += scan(
                level,
                batch.column("ts").to_numpy(),
                at,
                len(names),
                bound.window.size,
                window_in_search,
                time,
                loops,
                transitions,
                visited,
                found,
                pending,
                out,
            )
            inside += process_time() - began
            at += len(level)
        return Found(total, inside)

    return program


@njit(cache=True)
def _scan(
    level: Ints,
    times: Ints,
    begin: int,
    length: int,
    window: int,
    early: bool,
    time: Ints,
    loops: Ints,
    transitions: Ints,
    visited: Ints,
    found: Ints,
    pending: Ints,
    out: Ints,
) -> int:
    mask = len(time) - 1
    sizes = np.zeros(length + 1, np.int64)
    place = np.zeros(length + 1, np.int64)
    total = 0
    made = 0
    for i in range(begin, begin + len(level)):
        cell, before = i & mask, (i - 1) & mask
        time[cell] = times[i - begin]
        for state in range(1, length + 1):
            active = i > 0 and (loops[state, before] >= 0 or transitions[state, before] >= 0)
            loops[state, cell] = i - 1 if active and state < length else -1
            reached = level[i - begin] == state and (
                state == 1
                or (
                    i > 0 and (loops[state - 1, before] >= 0 or transitions[state - 1, before] >= 0)
                )
            )
            # The starting state is active at each point: its instance is that of the event before.
            transitions[state, cell] = max(i - 1, 0) if reached else -1
        if transitions[length, cell] < 0:
            continue
        oldest = time[cell] - window if early else np.int64(-1)
        # Depth first, state by state: the newest instances lead to all older ones.
        sizes[:] = 0
        found[length, 0] = i
        sizes[length] = 1
        for state in range(length - 1, 0, -1):
            waiting = 0
            for n in range(sizes[state + 1]):
                pending[waiting] = transitions[state + 1, found[state + 1, n] & mask]
                waiting += 1
            for n in range(waiting):
                instance = pending[n]
                while instance >= 0:
                    own = instance & mask
                    if visited[state, own] == i or (early and time[own] <= oldest):
                        break
                    visited[state, own] = i
                    if transitions[state, own] >= 0:
                        found[state, sizes[state]] = instance
                        sizes[state] += 1
                    instance = loops[state, own]
        # All paths: of each state a transition that is older than that of the state after it.
        state = length - 1
        place[length] = 0
        place[state] = 0
        while state < length:
            later = found[state + 1, place[state + 1]]
            while place[state] < sizes[state] and found[state, place[state]] >= later:
                place[state] += 1
            if place[state] == sizes[state]:
                state += 1
                place[state] += 1
                continue
            if state > 1:
                state -= 1
                place[state] = 0
                continue
            first = found[1, place[1]]
            if time[cell] - time[first & mask] < window:
                for s in range(1, length + 1):
                    out[s, made] = time[found[s, place[s]] & mask]
                made += 1
                total += 1
                if made == out.shape[1]:
                    made = 0
            place[1] += 1
    return total
