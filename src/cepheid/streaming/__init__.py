"""Queries over endless streams, whatever brings the events: buckets, and what is saved of them."""
