"""The ZStream workloads (section 6) and the Spark pipeline, measured: `python -m benchmarks`."""
