"""Streams under random faults, compared with SQL: `python -m tests.campaign`."""
