"""What `cepheid run` does over finite data: in process or on Spark, with queries or rules."""
