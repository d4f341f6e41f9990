"""MATCH_RECOGNIZE clauses and rows, drawn."""

from __future__ import annotations

from random import Random

LABELS = "ABCD"
_OPERATORS = ("<", "<=", "=", "<>", ">", ">=")
_QUANTIFIERS = ("*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{,2}")


def draw_pattern(random: Random, depth: int = 3) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.35:
        return random.choice(LABELS)
    inner = draw_pattern(random, depth - 1)
    if kind < 0.6:
        return " ".join([inner, *(draw_pattern(random, depth - 1) for _ in range(2))])
    if kind < 0.7:
        return f"({inner} | {draw_pattern(random, depth - 1)})"
    if kind < 0.74:
        return f"PERMUTE({inner}, {draw_pattern(random, depth - 1)})"
    if kind < 0.78:
        return "{- " + inner + " -}"
    if kind < 0.8:
        return random.choice(["()", f"^ {inner}", f"{inner} $"])
    return f"({inner}){random.choice(_QUANTIFIERS)}{random.choice(['', '', '?'])}"


def draw_operand(random: Random, labels: list[str], own: str | None) -> str:
    """`own`: inside DEFINE, the label that is defined."""
    column = random.choice("xyn")
    label = random.choice([*labels, own or labels[0], own or "U", "U"])
    read = random.choice([column, f"{label}.{column}", f"{label}.{column}"])
    final = "FINAL " if own is None and random.random() < 0.3 else ""
    match random.randrange(10):
        case 0:
            return f"PREV({read})"
        case 1:
            return f"NEXT({read}, {random.randrange(3)})"
        case 2:
            return f"{final}FIRST({read})"
        case 3:
            return f"{final}LAST({read}, {random.randrange(3)})"
        case 4:
            return f"PREV({final}FIRST({read}, {random.randrange(2)}), {random.randrange(3)})"
        case 5:
            return f"{final}{random.choice(['sum', 'min', 'max', 'count'])}({read})"
        case 6:
            counted = random.choice(["*", f"{label}.*", f"DISTINCT {read}"])
            return f"{final}count({counted})"
        case 7:
            return str(random.randrange(4))
        case _:
            return read


def draw_condition(random: Random, labels: list[str], own: str) -> str:
    def simple() -> str:
        if random.random() < 0.15:  # of texts
            far = f"LAST({random.choice(labels)}.s, {random.randrange(2)})"
            read = random.choice([f"{own}.s", f"{own}.s", f"concat({far}, 'a')", "min(s)"])
            either = f"{random.choice(['coalesce', 'greatest', 'least'])}({far}, 'b')"
            other = random.choice([far, "'b'", "PREV(s)", either, f"max({own}.s)"])
            return f"{read} {random.choice(_OPERATORS)} {other}"
        if random.random() < 0.15:  # of labels
            label = random.choice([*labels, "U"])
            read = random.choice(
                [
                    f"LAST(CLASSIFIER(), {random.randrange(3)})",
                    "FIRST(CLASSIFIER())",
                    "PREV(CLASSIFIER())",
                    f"CLASSIFIER({label})",
                    f"LAST(CLASSIFIER({label}), 1)",
                ]
            )
            other = random.choice([f"'{random.choice(labels)}'", "FIRST(CLASSIFIER(), 1)", "s"])
            return f"{read} {random.choice(_OPERATORS)} {other}"
        if random.random() < 0.1:
            return f"count(DISTINCT CLASSIFIER()) < {random.randint(1, 3)}"
        if random.random() < 0.6:  # of the row and its neighbors
            other = random.choice([str(random.randrange(4)), f"PREV({own}.x)", f"NEXT({own}.y)"])
            return f"{own}.{random.choice('xy')} {random.choice(_OPERATORS)} {other}"
        left, right = (draw_operand(random, labels, own) for _ in range(2))
        if random.random() < 0.1:
            return f"{left} IS NULL"
        if random.random() < 0.1:
            return f"{left} IS {random.choice(['', 'NOT '])}DISTINCT FROM {right}"
        return f"{left} {random.choice(_OPERATORS)} {right}"

    match random.randrange(5):
        case 0:
            return f"({simple()} OR {simple()})"
        case 1:
            return f"{simple()} AND {simple()}"
        case 2:
            return f"NOT ({simple()})"
        case _:
            return simple()


def draw_clause(random: Random) -> str:
    pattern = draw_pattern(random)
    labels = [name for name in LABELS if name in pattern.replace("PERMUTE", "")] or ["A"]
    if labels == ["A"] and "A" not in pattern:
        pattern += " A"
    subset = f"SUBSET U = ({', '.join(random.sample(labels, random.randint(1, len(labels))))})"
    defined = [name for name in labels if random.random() < 0.8]
    conditions = ", ".join(f"{n} AS {draw_condition(random, labels, n)}" for n in defined)
    measures = [draw_operand(random, labels, None) for _ in range(4)]
    measures += ["CLASSIFIER()", "MATCH_NUMBER()", "array_agg(x)", "avg(U.x)"]
    named = ", ".join(f"{m} AS m{n}" for n, m in enumerate(measures))
    rows = random.choice(
        [
            "ONE ROW PER MATCH",
            "ALL ROWS PER MATCH",
            "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
            "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        ]
    )
    if "UNMATCHED" in rows:  # the standard doesn't allow both
        pattern = pattern.replace("{- ", "(").replace(" -}", ")")
    label = random.choice([*labels, "U"])
    skips = ["PAST LAST ROW", "TO NEXT ROW", f"TO FIRST {label}", f"TO LAST {label}"]
    skip = random.choice(skips if random.random() < 0.5 else skips[:2])
    within = random.choice(["", "", "", "WITHIN 4 units"])
    define = f"DEFINE {conditions}" if conditions else ""
    return (
        f"PARTITION BY k ORDER BY t MEASURES {named} {rows} AFTER MATCH SKIP {skip} "
        f"PATTERN ({pattern}) {within} {subset} {define}"
    )


def draw_endless_clause(random: Random) -> str:
    """One that a stream can run: bounded by WITHIN, or without loops that have no end."""
    while True:
        clause = draw_clause(random)
        rows, pattern = clause.index(" AFTER MATCH"), clause.index("PATTERN (")
        head = clause[:rows]
        for mode in ("ONE ROW", "ALL ROWS"):
            head = head.split(f" {mode} PER MATCH")[0]
        body = clause[pattern:]
        if random.random() < 0.5 and "WITHIN" not in body:
            body = body.replace(" SUBSET", f" WITHIN {random.randint(2, 6)} units SUBSET", 1)
        elif "WITHIN" not in body:
            for endless, bounded in {"*": "{0,2}", ")+": "){1,2}", "{2,}": "{2,3}"}.items():
                until = body.index("SUBSET")
                body = body[:until].replace(endless, bounded) + body[until:]
        if "NEXT(" not in clause and "$" not in body:
            return f"{head} {clause[rows:pattern]} {body}"


def draw_rows(random: Random) -> list[dict[str, object]]:
    """Rows of two partitions, not in order; `n` and `s` have NULLs."""
    rows: list[dict[str, object]] = []
    for key in "pq"[: random.choice([1, 2])]:
        times = random.sample(range(20), random.randrange(8))
        rows += [
            {
                "k": key,
                "t": time,
                "x": random.randrange(4),
                "y": random.randrange(4),
                "n": random.choice([None, 0, 1, 2]),
                "s": random.choice(["a", "b", "ä", None]),
            }
            for time in times
        ]
    random.shuffle(rows)
    return rows
