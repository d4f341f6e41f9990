"""Files of events on Spark: rows are made by the code that a local run uses (`cepheid.files`)."""
