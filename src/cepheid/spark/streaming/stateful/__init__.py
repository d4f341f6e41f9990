"""The stateful operator: which bucket a row belongs to, how rows travel, and what a bucket does."""
