"""Where rules run on Spark: which share a pass over the events, and how a pass is split."""
