"""Continuous runs in this process: events are pushed, and matches come back as they are known."""
