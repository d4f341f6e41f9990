"""Random texts through the parser, the binder and the planner: `python -m tests.fuzz`."""
