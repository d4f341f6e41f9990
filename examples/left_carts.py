"""Find carts that are left without paying, in JSON lines on standard input, as they come.

    python examples/left_carts.py < events.jsonl
    nc -lk 9000 | python examples/left_carts.py        # or from a local socket

A line is an event: {"ts": 0, "type": "ADD", "cart": 7}; `ts` are seconds. A line {"ts": 1900} is a
heartbeat: time passes without an event. docs/sessions.md explains it.
"""

import json
import sys
from collections.abc import Iterable

import pyarrow as pa

import cepheid as cep

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "cart": pa.int64()})
QUERY = "PATTERN ADD a ; !PAY p FOR 30 minutes WHERE [cart] RETURN a.cart AS cart"


def main(lines: Iterable[str]) -> cep.SessionStatus:
    session = cep.open(QUERY, SCHEMA, time="ts", type="type", unit="s", until="last event")
    for line in lines:
        event = json.loads(line)
        found = session.push(event) if "type" in event else session.advance(event["ts"])
        tell(found)
    tell(session.close())
    return session.status


def tell(found: pa.Table) -> None:
    for match in found.to_pylist():
        print(f"cart {match['cart']} was left at {match['match_start']} s", flush=True)


if __name__ == "__main__":
    status = main(sys.stdin)
    print(f"{status.events} events, {status.matches} carts left, {status.undecided} undecided")
