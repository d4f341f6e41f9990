"""MATCH_RECOGNIZE over rows that never end: what it must be like, and what has to be kept."""

from __future__ import annotations

from cepheid.algebra.binding.findings import Findings
from cepheid.algebra.types import Type
from cepheid.language import ast
from cepheid.language.diagnostics import Source
from cepheid.language.traversal import walk
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.leaves import MatchNumber, Navigation, RowExpression
from cepheid.row_patterns.row_program import At, Jump, RowProgram
from cepheid.row_patterns.syntax import PartitionEdge, Recognition, RowsPerMatch


def check_endless(recognition: Recognition, bound: BoundRecognition, source: Source) -> None:
    """A `QueryError`, if a stream can't return what the clause says, or would have to keep
    everything for it."""
    findings = Findings(source)
    pattern = recognition.pattern_span
    if bound.rows is not RowsPerMatch.ONE:
        message = f"a stream has no {bound.rows.value}"
        hint = "use ONE ROW PER MATCH, with array_agg for the values of its rows"
        findings.add("CEP621", message, pattern, hint)
    _check_order(recognition, bound, findings)
    if bound.window is None and _is_unbounded(bound.program):
        message = "this pattern takes any number of rows, and a stream would have to keep them all"
        hint = "add `WITHIN INTERVAL '1' HOUR` after PATTERN, or give quantifiers an upper bound"
        findings.add("CEP622", message, pattern, hint)
    if At(PartitionEdge.END) in bound.program.instructions:
        message = "`$` is the end of a partition, and a stream has none"
        findings.add("CEP623", message, pattern, "leave it out")
    for node in walk((recognition.measures, recognition.definitions)):
        if isinstance(node, ast.Call) and node.name == "next":
            hint = "give the next row a label in PATTERN, and compare it with PREV"
            message = "NEXT reads a row that has not come yet"
            findings.add("CEP624", message, node.span, hint)
    findings.check()


def _check_order(recognition: Recognition, bound: BoundRecognition, findings: Findings) -> None:
    hint = "write `ORDER BY ts`, with the time of the rows first"
    if not bound.order:
        message = "a stream needs ORDER BY: rows are matched in the order of their time"
        findings.add("CEP620", message, recognition.pattern_span, hint)
        return
    key = bound.order[0]
    kind = bound.schema.columns.get(key.column)
    if key.descending or kind not in (Type.TIMESTAMP, Type.INTEGER):
        reason = "is descending" if key.descending else "is no time"
        message = f"a stream is in the order of its time, and `{key.column}` {reason}"
        findings.add("CEP620", message, recognition.order[0].span, hint)


def _is_unbounded(program: RowProgram) -> bool:
    """Whether it goes around: some match takes more than any number of rows."""
    return any(
        isinstance(instruction, Jump) and instruction.to <= number
        for number, instruction in enumerate(program.instructions)
    )


def rows_before(bound: BoundRecognition) -> int:
    """How many rows before the first one of a match have to be known: for PREV, unless what it is
    read from always comes later in the match; and one, if matches are numbered or the start of a
    partition matters, which its last row then keeps."""
    program = bound.program
    values: list[tuple[str | None, RowExpression]] = [(None, m.value) for m in bound.measures]
    values += bound.conditions.items()
    leaves = [(label, leaf) for label, value in values for leaf in value.leaves]
    navigations = [(label, leaf) for label, leaf in leaves if isinstance(leaf, Navigation)]
    read = [-leaf.shift - _least_place(program, label, leaf) for label, leaf in navigations]
    numbered = any(isinstance(leaf, MatchNumber) for _, leaf in leaves)
    anchored = At(PartitionEdge.START) in program.instructions
    return max([0, int(numbered or anchored), *read])


def _least_place(program: RowProgram, label: str | None, leaf: Navigation) -> int:
    """Where in a match the row stands, at the least, that a leaf navigates from; `label` is that of
    the row at hand, None in MEASURES."""
    if leaf.labels is not None:
        place = program.rows_before_labels(map(program.labels.index, leaf.labels))
        return place if leaf.last else place + leaf.offset
    if not leaf.last:
        return leaf.offset
    if label is None:
        return 0
    here = program.rows_before_labels([program.labels.index(label)])
    return max(0, here - leaf.offset)
