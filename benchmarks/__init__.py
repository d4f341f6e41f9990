"""The ZStream workloads (section 6) and the Spark pipeline, measured: `python -m benchmarks`.

A run on a few events comes before those that are measured, and has to compile the kernels.
"""

from cepheid.engine import run

run.COMPILE_AT = 0
