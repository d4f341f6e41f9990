"""What plans are expected to cost: statistics, numbers of records, weights."""
