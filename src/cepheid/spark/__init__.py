"""Cepheid on Spark: Java, sessions, and the batch runtime."""
