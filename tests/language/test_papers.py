"""The queries of the papers, in our words, are read and written back."""

from __future__ import annotations

import pytest

from cepheid.language import parse, render

_SIX = (
    'a.name = "IBM" AND b.name = "Google" AND c.name = "Sun" AND d.name = "Oracle" '
    'AND e.name = "Microsoft" AND f.name = "Yahoo"'
)

QUERIES = {
    "ZStream query 1, sequence": """
        PATTERN T1; T2; T3
        WHERE T1.name = T3.name AND T2.name = 'Google'
          AND T1.price > (1 + :x) * T2.price AND T3.price < (1 - :y) * T2.price
        WITHIN 10 secs
        RETURN T1, T2, T3""",
    "ZStream query 2, negation": """
        PATTERN T1; !T2; T3
        WHERE T1.name = T2.name = T3.name
          AND T1.price > :x AND T2.price < :x AND T3.price > :x * (1 + 20%)
        WITHIN 10 secs
        RETURN T1, T3""",
    "ZStream query 3, closure": """
        PATTERN T1; T2{5}; T3
        WHERE T1.name = T3.name AND T2.name = 'Google' AND sum(T2.volume) > :v
          AND T3.price > (1 + 20%) * T1.price
        WITHIN 10 secs
        RETURN T1, sum(T2.volume), T3""",
    "ZStream query 4": "PATTERN IBM; Sun; Oracle WHERE IBM.price > Sun.price WITHIN 200 units",
    "ZStream query 5": "PATTERN IBM; Sun; Oracle WITHIN 200 units",
    "ZStream query 6": """
        PATTERN IBM; Sun; Oracle; Google
        WHERE Oracle.price > Sun.price AND Oracle.price > Google.price
        WITHIN 100 units""",
    "ZStream query 7": "PATTERN IBM; !Sun; Oracle WITHIN 200 units",
    "ZStream query 8": "PATTERN Publication; Project; Course WHERE [ip] WITHIN 10 hours",
    "ZStream, closure in the middle": "PATTERN A; B*; C WITHIN 10",
    "ZStream, rewriting": "PATTERN A; (!B & !C); D WITHIN 10",
    "ZStream, rewritten": "PATTERN A; !(B | C); D WITHIN 10",
    "SASE, shoplifting": """
        PATTERN SEQ(`SHELF-READING` x, !`COUNTER-READING` y, `EXIT-READING` z)
        WHERE [id] WITHIN 3 hours""",
    "SASE, misplaced inventory": """
        PATTERN SEQ(SHELF_READING x1, SHELF_READING x2, !ANY(COUNTER_READING, SHELF_READING) x3)
        WHERE [id] AND x1.shelf_id != x2.shelf_id AND x1.shelf_id = x3.shelf_id
        WITHIN 1 hour""",
    "SASE, overdose": """
        PATTERN SEQ(MEDICINETAKEN x1, MEDICINETAKEN x2)
        WHERE [name="John"] AND [medicine="Antibiotics"] AND (x1.amount + x2.amount) > 1000
        WITHIN 4 hours""",
    "SASE, running example": """
        PATTERN SEQ(A x1, B x2, !C x3, D x4)
        WHERE [attr1] AND [attr2] AND x1.attr3 = '1' AND x1.attr4 < x4.attr4
        WITHIN 10000""",
    "NEXT, fraud": """
        PATTERN t S1 -> t S2 -> t L
        WHERE S1.acc = S2.acc AND S2.acc = L.acc
        HAVING S1.amount < 100 AND S2.amount < 100 AND L.amount > 250
          AND (S1, L) OCCURS WITHIN 12 hours
        RETURN *""",
    "NEXT, three large transactions": """
        PATTERN t T1 -> t T2 -> t T3
        WHERE T1.acc = T2.acc AND T2.acc = T3.acc
        HAVING T1.amount > 1000 AND T2.amount > 1000 AND T3.amount > 1000""",
    "NEXT, another currency": """
        PATTERN t T1+ RUNS -> t T2 WHERE ALL(T1.currency) <> T2.currency WITHIN 1 min""",
    "NEXT, exception, union and time": r"""
        PATTERN (E1 -> E2) \ E3 | E4 @ 10 msec
        WHERE E4.text CONTAINS 'alarm'""",
    "Cayuga query 1": "PATTERN S a WHERE a.name = 'IBM' AND a.price > 100",
    "Cayuga query 2": """
        PATTERN S a -> S b
        WHERE a.name = 'IBM' AND a.price > 100 AND b.name = 'MSFT' HAVING b.price < 25""",
    "Cayuga query 3": """
        PATTERN S a -> S b WHERE a.name = b.name HAVING b.price > 1.05 * a.price""",
    "Cayuga query 5": """
        PATTERN S a -> S+ b PREFIXES
        WHERE [name] AND b.price > PREV(b.price) AND FIRST(b.price) > a.price
        HAVING duration() >= 30 minutes""",
    "Cayuga query 6": """
        PATTERN S+ b ; S c
        WHERE b.name = 'IBM' AND c.name = 'IBM' AND c.price > avg(b.price)
        WITHIN 52 weeks""",
    "Cayuga query 7": """
        PATTERN S a -> S+ b PREFIXES -> S c
        WHERE [name] AND a.vol > 10000 AND b.price < PREV(b.price)
        HAVING c.price > 1.05 * LAST(b.price)
        RETURN a.name, a.price AS high, LAST(b.price) AS low, c.price AS final""",
    "thesis query 2": """
        PATTERN a ; b+ SUBSETS ; c FROM S
        WHERE a.name = "IBM" AND b.name = "Sun" AND c.name = "Oracle"
        WITHIN 2 SEC
        USING SKIP TILL ANY MATCH
        RETURN *""",
    "thesis, short distances": f"""
        PATTERN a ; b ; c ; d ; e ; f FROM S
        WHERE {_SIX} AND a.price = b.price AND c.price = d.price AND e.price = f.price
        WITHIN :x SEC""",
    "thesis, long distances": f"""
        PATTERN a ; b ; c ; d ; e ; f FROM S
        WHERE {_SIX} AND a.price = d.price AND b.price = e.price AND c.price = f.price
        WITHIN :x SEC""",
    "thesis, inequalities": f"""
        PATTERN a ; b ; c ; d ; e ; f FROM S
        WHERE {_SIX} AND a.volume < d.volume AND c.price < f.price AND b.type < e.type
        WITHIN 50 SEC""",
    "thesis, two closures": f"""
        PATTERN a ; b+ SUBSETS ; c ; d ; e+ SUBSETS ; f FROM S
        WHERE {_SIX} AND a.volume < d.volume AND c.price < f.price
          AND b.price < 100 AND e.price < 100
        WITHIN :x SEC""",
}


@pytest.mark.parametrize("title", QUERIES)
def test_the_papers_queries(title: str) -> None:
    query = parse(QUERIES[title])
    assert parse(render(query)) == query
