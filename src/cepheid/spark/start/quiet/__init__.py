"""A folder on the path of Spark's Python processes, which load its `sitecustomize` when they
start."""
