"""The engine, hand-written loops, DuckDB and Polars on one thread each, and on all cores each."""
