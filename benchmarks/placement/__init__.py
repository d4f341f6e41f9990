"""NEXT's placement on modeled nodes (figure 11), and its rewriting on the engine (9 and 10)."""
