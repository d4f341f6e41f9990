"""SQL statements with row pattern recognition: everything else is left to Spark or DuckDB."""
