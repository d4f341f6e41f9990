"""Rows of events: their order and clock, which classes take them, where they are held."""
