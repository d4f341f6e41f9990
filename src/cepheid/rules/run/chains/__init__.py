"""Rules that read the matches of other rules of the set."""
