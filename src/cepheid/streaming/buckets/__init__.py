"""Buckets of a stream: the events of some keys, batch after batch. One module for each kind."""
