"""Which rule a match belongs to, and the table in which the matches of all rules are returned."""
