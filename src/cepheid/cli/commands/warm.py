"""`cepheid warm`: compile what a query needs before its first events come."""

from __future__ import annotations

import typer

from cepheid.cli import arguments
from cepheid.cli.option_groups import EventOptions, FileOptions, PlanOptions, flat


@flat
def warm(
    events: EventOptions,
    read: FileOptions,
    forced: PlanOptions,
    file: arguments.QueryFile = None,
    query: arguments.QueryText = None,
) -> None:
    """Compile the kernels that a query needs, so that its first run doesn't wait.

    They are kept on disk for all processes: in $CEPHEID_CACHE, or else in cepheid
    in $XDG_CACHE_HOME or ~/.cache. Run it when an image is built, or on a machine
    before a stream starts there.

        cepheid warm theft.cep --input sample.parquet --time ts --type type

    A few events are enough for --input. Columns in which they have NULLs get
    kernels that look for NULLs. With --stats, the plan is that of a run with them.
    """
    from time import perf_counter

    from cepheid.cli.inputs import input_sources, make_options, read_events
    from cepheid.cli.queries import read_query, refuse_unknown
    from cepheid.errors import DataError
    from cepheid.kernels import kernel_folder
    from cepheid.query.compiled_ahead import warm as compile_ahead

    kept = kernel_folder()
    if kept is None:
        raise DataError(
            "kernels can't be kept: the folder for them can't be written; set CEPHEID_CACHE to one "
            "that can"
        )
    parsed = read_query(file, query)
    options = make_options(events, forced)
    refuse_unknown(options.params, (parsed,))
    sample = read_events(parsed, input_sources(events, read), options)
    began = perf_counter()
    compiled = compile_ahead(parsed, sample, options)
    if compiled:
        kernels = "1 kernel" if compiled == 1 else f"{compiled} kernels"
        took = perf_counter() - began
        typer.echo(f"compiled {kernels} in {took:.1f} s; kept in {kept}")
    else:
        typer.echo(f"nothing to compile: the kernels are in {kept}")
