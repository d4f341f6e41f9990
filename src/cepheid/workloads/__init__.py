"""The seeded events behind the examples, the demo and the benchmarks.

    stocks   ticks with chosen rates and chosen predicate selectivities   (ZStream, section 6)
    weblog   a month of a web server with the counts of Table 4           (ZStream, section 6.5)
    fraud    card transactions with planted fraud                         (NEXT CEP, section 1.1)
    rfid     a shop's shelf, counter and exit readings with thieves       (SASE, section 2)
    cayuga   uniform events, and hundreds of thousands of rules for them  (Cayuga, section 5.1)

Each module has `SCHEMA`, `generate(rows, seed, ...)` for a pyarrow Table and `batches(...)`, with
the same parameters, for data larger than memory. The same arguments give the same events, and
`generate` is exactly the batches put together. Events come in time order.

    >>> from cepheid.workloads import stocks
    >>> stocks.generate(3, seed=1, rates={"IBM": 1}).column("name").to_pylist()
    ['IBM', 'IBM', 'IBM']
"""

from cepheid.workloads import cayuga, fraud, rfid, stocks, weblog

__all__ = ["cayuga", "fraud", "rfid", "stocks", "weblog"]
