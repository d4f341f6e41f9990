"""NEXT's placement on modeled nodes: figure 11."""
