"""An explanation as JSON. `VERSION` changes whenever a reader of the old form would stumble."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cepheid.explain.quantities import relative
from cepheid.explain.shown_tree import Shown, show
from cepheid.plan.profile import Profile
from cepheid.plan.text import settings
from cepheid.planner.planned import Planned

if TYPE_CHECKING:
    from cepheid.explain.explanation import Explanation

VERSION = 1


def to_json(explanation: Explanation) -> str:
    """The object that `docs/explain.md` describes, indented."""
    planned, profile = explanation.planned, explanation.profile
    document = {
        "version": VERSION,
        "query": explanation.query,
        "warnings": list(explanation.warnings),
        "rewrites": [
            {"rule": a.rule, "before": a.before, "after": a.after} for a in explanation.rewrites
        ],
        "answers": explanation.answers,
        "plan": _plan(planned, profile),
        "other_plans": [
            {"name": c.name, "cost": c.cost, "relative": relative(c.cost, planned.winner.cost)}
            for c in planned.losers
        ],
        "statistics": {
            "rates": dict(planned.statistics.rates),
            "selectivities": dict(planned.statistics.selectivities),
            "distinct": dict(planned.statistics.distinct),
        },
        "distribution": [{"label": name, "text": text} for name, text in explanation.distribution],
        "run": None if profile is None else _run(profile),
    }
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)


def _plan(planned: Planned, profile: Profile | None) -> dict[str, Any]:
    named = dict(settings(planned.plan))
    return {
        "name": planned.winner.name,
        "forced": planned.forced,
        "cost": planned.winner.cost,
        "propagation": list(dict.fromkeys(c.propagation for c in planned.winner.choices)),
        "key": named.get("key"),
        "window": named.get("window"),
        "tree": _node(show(planned, profile)),
    }


def _node(node: Shown) -> dict[str, Any]:
    return {
        "operator": node.name,
        "conditions": list(node.conditions),
        "states": [asdict(state) for state in node.states],
        "leaf": node.leaf,
        "negated": node.negated,
        "uses": node.uses,
        "estimate": None if node.estimate is None else asdict(node.estimate),
        "actual": None if node.actual is None else asdict(node.actual),
        "inputs": [_node(part) for part in node.inputs],
    }


def _run(profile: Profile) -> dict[str, Any]:
    return {
        "events": profile.events,
        "rejected": profile.rejected,
        "shed": profile.shed,
        "matches": profile.matches,
        "rounds": profile.rounds,
        "idle": profile.idle,
        "seconds": profile.seconds,
        "sampling": profile.sampling,
        "compiling": profile.compiling,
        "partitions": profile.partitions,
        "replans": [asdict(replan) for replan in profile.replans],
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity: a cost past all bounds is null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {name: _finite(part) for name, part in value.items()}
        case list():
            return [_finite(part) for part in value]
        case _:
            return value
