"""Rewrite rules: before and after, and the same matches."""
