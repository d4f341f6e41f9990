"""Structured Streaming: what matching costs beside storing, and runs without an end."""
