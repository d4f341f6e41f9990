"""Makes the counter for a way to count."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.answers.counted.branch_counter import BranchCounter
from cepheid.answers.counted.chain_counter import ChainCounter
from cepheid.answers.counted.chain_walks import ChainWalk
from cepheid.answers.counted.countable import CountedBranches, Counting, Way
from cepheid.answers.counted.counted_matches import Counter
from cepheid.answers.counted.neighbor_counter import NeighborCounter
from cepheid.answers.counted.neighbor_pair import NeighborPair
from cepheid.answers.counted.sequence_counter import SequenceCounter


def counter_of(way: Way, query: BoundQuery, schema: pa.Schema, jit: bool) -> Counter:
    """`schema` is that of the matches."""
    match way:
        case Counting():
            return SequenceCounter(query, schema, jit, way)
        case ChainWalk():
            return ChainCounter(query, schema, jit, way)
        case NeighborPair():
            return NeighborCounter(query, schema, jit, way)
        case CountedBranches():
            return BranchCounter(way, lambda part, branch: counter_of(part, branch, schema, jit))
        case _:
            assert_never(way)
