"""The runtime for data in this process: tables, frames, and iterators of record batches."""
