"""Partitions of a batch: which rows go to which one, and the engine that runs there.

layout, arrange, salts   how the work is divided, and the rows of each partition
hot_keys                 keys with too many rows, in slices of time
worker, batch_sizes      the engine over the rows of a partition, in batches of a good size
"""
