"""The queries in DuckDB's SQL, tuned by hand: joins on time buckets (see `benchmarks.rivals`), an
as-of join, window functions."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.peers.hand_loops import HOURS, LARGE, SMALL
from benchmarks.rivals import HOURS as WEB_HOURS

STOCKS = ("ibm", "sun", "oracle", "google")
NAMES = ("IBM", "Sun", "Oracle", "Google")


def buckets(classes: int, per_window: int, window: int, predicate: str = "true") -> str:
    """A sequence of so many stocks within a window, by buckets of a part of the window."""
    size, copies = window // per_window, f"bucket - unnest(range({per_window + 1})) AS bucket"
    stocks = STOCKS[:classes]
    sides = [
        f"{stock} AS (SELECT price, ts, {copies if n else 'bucket'} FROM ticks "
        f"WHERE name = '{NAMES[n]}')"
        for n, stock in enumerate(stocks)
    ]
    order = [
        f"{later}.ts > {earlier}.ts AND {later}.ts < ibm.ts + {window}"
        for earlier, later in pairwise(stocks)
    ]
    returned = ", ".join(f"{stock}.price AS {stock}" for stock in stocks)
    joined = " ".join(f"JOIN {stock} USING (bucket)" for stock in stocks[1:])
    return f"""
        WITH ticks AS (SELECT name, price, ts, ts // {size} AS bucket FROM events),
        {", ".join(sides)}
        SELECT {returned}, ibm.ts AS match_start, {stocks[-1]}.ts AS match_end
        FROM ibm {joined} WHERE {" AND ".join(order)} AND {predicate}
    """


NEGATION = """
    WITH ibm AS (
        SELECT i.price, i.ts, s.ts AS sun
        FROM (SELECT price, ts FROM events WHERE name = 'IBM') i
        ASOF LEFT JOIN (SELECT ts FROM events WHERE name = 'Sun') s ON s.ts > i.ts
    ),
    near AS (
        SELECT price, ts, least(coalesce(sun, ts + 200), ts + 200) AS until, ts // 200 AS bucket
        FROM ibm
    ),
    oracle AS (
        SELECT price, ts, ts // 200 - unnest(range(2)) AS bucket FROM events WHERE name = 'Oracle'
    )
    SELECT near.price AS ibm, oracle.price AS oracle, near.ts AS match_start, oracle.ts AS match_end
    FROM near JOIN oracle USING (bucket) WHERE oracle.ts > near.ts AND oracle.ts < near.until
"""

_PAGES = "ip, url, time, bucket - unnest(range(2)) AS bucket"
WEB = f"""
    WITH page AS (
        SELECT *, epoch_us(time) // {WEB_HOURS * 3_600_000_000} AS bucket
        FROM events WHERE category IN ('publication', 'project', 'courses')
    ),
    a AS (SELECT * FROM page WHERE category = 'publication'),
    b AS (SELECT {_PAGES} FROM page WHERE category = 'project'),
    c AS (SELECT {_PAGES} FROM page WHERE category = 'courses')
    SELECT a.ip, a.url AS publication, b.url AS project, c.url AS course, a.time AS match_start,
           c.time AS match_end
    FROM a JOIN b USING (ip, bucket) JOIN c USING (ip, bucket)
    WHERE b.time > a.time AND b.time < a.time + INTERVAL {WEB_HOURS} HOUR
      AND c.time > b.time AND c.time < a.time + INTERVAL {WEB_HOURS} HOUR
"""

_CARDS = "id, ts, card, bucket - unnest(range(2)) AS bucket"
FRAUD = f"""
    WITH purchase AS (
        SELECT id, ts, card, amount, epoch_us(ts) // {HOURS * 3_600_000_000} AS bucket
        FROM events WHERE kind = 'purchase' AND (amount < {SMALL} OR amount > {LARGE})
    ),
    big AS (SELECT * FROM purchase WHERE amount > {LARGE}),
    small AS (SELECT id, ts, card, bucket + unnest(range(2)) AS bucket
              FROM purchase WHERE amount < {SMALL}),
    pairs AS (
        SELECT big.id, big.ts, big.card, big.amount, big.bucket, s.id AS second, s.ts AS second_ts
        FROM big JOIN small s USING (card, bucket)
        WHERE (s.ts, s.id) < (big.ts, big.id) AND s.ts > big.ts - INTERVAL {HOURS} HOUR
    )
    SELECT card, s.id AS first, second, pairs.id AS last, amount, s.ts AS match_start,
           pairs.ts AS match_end
    FROM pairs JOIN small s USING (card, bucket)
    WHERE (s.ts, s.id) < (second_ts, second) AND s.ts > pairs.ts - INTERVAL {HOURS} HOUR
"""

# A run of rises has its match, if it has three events or more: then it doesn't matter whether the
# match before it has taken its first. One of two events has a match unless the run before has one,
# so of a streak of such runs it is every second one.
STRICT_RUN = """
    WITH before AS (
        SELECT *, lag(price) OVER of_account AS previous, lead(id) OVER of_account AS next_id,
               lead(ts) OVER of_account AS next_ts
        FROM events WINDOW of_account AS (PARTITION BY account ORDER BY id)
    ),
    rises AS (
        SELECT *, sum(CASE WHEN price > previous THEN 0 ELSE 1 END)
               OVER (PARTITION BY account ORDER BY id ROWS UNBOUNDED PRECEDING) AS run
        FROM before
    ),
    runs AS (
        SELECT account, run, count(*) AS size, min(id) AS first, min(ts) AS begin,
               min(next_id) AS second, min(next_ts) AS second_begin,
               max(next_id) AS fall, max(next_ts) AS fell
        FROM rises GROUP BY account, run
    ),
    streaks AS (
        SELECT *, sum(CASE WHEN size = 2 THEN 0 ELSE 1 END) OVER of_account AS streak,
               lead(run) OVER of_account IS NOT NULL AS ends
        FROM runs WINDOW of_account AS (PARTITION BY account ORDER BY run)
    ),
    matched AS (
        SELECT *, ends AND (size > 2 OR (size = 2 AND
                  (max(size) OVER of_streak > 2) <> (sum(size = 2) OVER of_streak % 2 = 1)))
               AS matches
        FROM streaks WINDOW of_streak AS (PARTITION BY account, streak ORDER BY run)
    ),
    taken AS (
        SELECT *, coalesce(lag(matches) OVER (PARTITION BY account ORDER BY run), false) AS is_taken
        FROM matched
    )
    SELECT account, CASE WHEN is_taken THEN second ELSE first END AS first,
           size - 1 - is_taken::INT AS rises, fall AS last,
           CASE WHEN is_taken THEN second_begin ELSE begin END AS match_start, fell AS match_end
    FROM taken WHERE matches
"""
