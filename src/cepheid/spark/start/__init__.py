"""How Spark starts: a session, its Java, and Python processes that are quiet."""
