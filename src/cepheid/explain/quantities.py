"""Costs beside each other, and moments of a plan's clock."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from cepheid.algebra.query import Clock
from cepheid.algebra.types import Type
from cepheid.plan.nodes import Plan

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def relative(cost: float, least: float) -> float:
    """A cost relative to the winner's; two plans that cost nothing are equal."""
    if least > 0:
        return cost / least
    return 1.0 if cost == least else math.inf


def moment(plan: Plan, at: int) -> str:
    """A value of the plan's clock: a time, a number, or how many events had come."""
    if plan.window is not None and plan.window.clock is Clock.EVENTS:
        return f"event {at:,}"
    if plan.schema.columns[plan.schema.time] is Type.INTEGER:
        return f"{at:,}"
    try:
        time = _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return f"{at:,} µs"
    return time.replace(tzinfo=None).isoformat(" ", "milliseconds")
