"""Hypothesis strategies and the suites that use them."""
