"""A folder for the path of Spark's Python processes: what it holds is loaded when they start."""
