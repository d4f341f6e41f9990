"""Trees of joins: shapes, what hangs on them, the cheapest, and how results move through them."""
