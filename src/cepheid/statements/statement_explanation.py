"""How the clauses of a statement are run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cepheid.explain import Explanation
from cepheid.row_patterns.recognition_summary import RecognitionSummary


@dataclass(frozen=True)
class StatementExplanation:
    """How each MATCH_RECOGNIZE and `cep_match` of a statement is run, inner ones first: print it,
    or take it as data. What stands around them is left to the SQL engine."""

    clauses: tuple[RecognitionSummary | Explanation, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"clauses": [_data(clause) for clause in self.clauses]}

    def __str__(self) -> str:
        if not self.clauses:
            return "the statement has no MATCH_RECOGNIZE: all of it is left to the SQL engine"
        return "\n\n\n".join(map(str, self.clauses))

    def __repr__(self) -> str:
        return f"StatementExplanation({len(self.clauses)} clauses)"


def _data(clause: RecognitionSummary | Explanation) -> dict[str, Any]:
    import json

    if isinstance(clause, RecognitionSummary):
        return asdict(clause)
    document: dict[str, Any] = json.loads(clause.to_json())
    return document
