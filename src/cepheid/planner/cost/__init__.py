"""The expected cost of plans: statistics, numbers of records, weights."""
