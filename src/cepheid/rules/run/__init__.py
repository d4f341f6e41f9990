"""Rules over events: in process, on Spark and on a stream, and what is sent to the workers."""
