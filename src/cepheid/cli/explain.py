"""`cepheid explain`: the plan of a query."""

from __future__ import annotations

import typer

from cepheid.cli import arguments


def explain(
    query: arguments.QueryFile,
    input: arguments.OptionalInputs = None,
    time: arguments.AssumedTime = "ts",
    type: arguments.TypeColumn = None,
    tie: arguments.TieColumn = None,
    unit: arguments.Unit = None,
    param: arguments.Parameters = None,
    plan: arguments.PlanShape = "left-deep",
    input_format: arguments.InputFormat = None,
) -> None:
    """Show how a query is run: its key, its window, and the tree of its operators.

    Conditions stand at the operator that tests them. Without --input every
    attribute is taken to exist.

        cepheid explain theft.cep

        cepheid explain theft.cep --input rfid.parquet --time ts --type type

        cepheid explain stocks.cep --plan '((IBM Sun) (Oracle Google))'
    """
    from cepheid.cli.inputs import columns_for, make_options, read_query
    from cepheid.plan.text import plan_text
    from cepheid.planner import make_plan

    parsed = read_query(query)
    options = make_options(time, type, tie, unit, param, plan)
    bound = parsed.bind(*columns_for(parsed, input, input_format, options))
    typer.echo(plan_text(make_plan(bound, options.plan, options.negation == "push")))
