"""Codes of strings: equal ones are equal, whether they come one by one or many at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.engine.arrays.interner import MANY, Interner
from tests.examples import examples

POOL = [f"text {n:05}" for n in range(4 * MANY)]
TURNS = ("few", "some", "many", "again", "code", "tuple", "bytes", "forget", "decode", "copy")


def column(random: np.random.Generator, size: int) -> pa.Array:
    texts = pa.array(POOL).take(pa.array(random.integers(0, len(POOL), size)))
    if random.integers(3) == 0:
        texts = pa.array([None if n % 7 == 0 else t for n, t in enumerate(texts.to_pylist())])
    return texts.dictionary_encode() if random.integers(2) else texts


@settings(max_examples=examples("interner"), deadline=None)
@given(st.lists(st.sampled_from(TURNS), max_size=14), st.integers(0, 2**32))
def test_codes_are_those_of_a_dictionary(turns: list[str], seed: int) -> None:
    """Each text has one code, from when it came until it is forgotten."""
    random, interner = np.random.default_rng(seed), Interner()
    known: dict[object, int] = {}
    given_ever: set[int] = set()

    def check(value: object, code: int) -> None:
        assert known.get(value, code) == code
        if value not in known:
            assert code not in given_ever
            known[value] = code
            given_ever.add(code)

    for turn in turns:
        match turn:
            case "few" | "some" | "many" | "again":
                size = {"few": 9, "some": 100, "many": 2 * MANY, "again": 8 * MANY}[turn]
                array = column(random, size)
                codes, valid = interner.encode(array)
                assert (valid is None) == (array.null_count == 0)
                for value, code in zip(array.to_pylist(), codes.tolist(), strict=True):
                    if value is not None:
                        check(value, code)
            case "code":
                text = POOL[random.integers(len(POOL))]
                check(text, interner.code(text))
            case "tuple":
                check(("a", None), interner.code(("a", None)))
            case "bytes":
                check(b"text 00001", interner.code(b"text 00001"))
            case "forget":
                kept = {v: c for v, c in known.items() if random.integers(3)}
                interner.forget([*kept.values(), *list(kept.values())[:5]])
                known = kept
            case "decode":
                codes = np.array(list(known.values()), np.int64)
                assert interner.decode(codes, None)[0].tolist() == list(known)
            case _:
                interner = interner.copy()
        assert len(interner) == len(known)
    texts = {code: value for value, code in known.items() if not isinstance(value, tuple)}
    assert interner.strings(texts) == texts
    encoded = [v.encode() if isinstance(v, str) else v for v in texts.values()]
    found = interner.encoded(np.array(list(texts), np.int64))
    assert found.cast(pa.large_binary()).to_pylist() == encoded


@pytest.mark.parametrize("values", [["u", "u"], ["u", "u", None], [None, "u", "u"]])
def test_a_dictionary_may_hold_a_value_twice(values: list[str | None]) -> None:
    places = [n for n, value in enumerate(values) if value == "u"]
    key = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(values))
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "k": key})
    query = "PATTERN A a ; B b WHERE [k] WITHIN 5"
    assert cep.match(table, query, time="ts", type="type").num_rows == 1
