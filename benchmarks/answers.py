"""The number of matches of each workload at full size, as `python -m benchmarks.answers` prints it.

The loops counted them, and DuckDB those of the Spark pipeline. A test holds the loops against
plain SQL on fewer events.
"""

from __future__ import annotations

ANSWERS = {
    "q4 1/1": 109_346_903,
    "q4 1/2": 109_528_942,
    "q4 1/4": 91_041_115,
    "q4 1/8": 90_713_862,
    "q4 1/16": 45_195_671,
    "q4 1/32": 22_549_456,
    "q5 50:1:1": 7_102_871,
    "q5 10:1:1": 114_488_161,
    "q5 1:1:1": 145_801_819,
    "q5 1:10:10": 107_031_781,
    "q5 1:50:50": 48_888_220,
    "q6 rate=1:100:100:100": 5_969_808,
    "q6 sel1=1/50": 3_564_842,
    "q6 sel2=1/50": 3_558_750,
    "q7 1:1:1": 332_409,
    "q7 1:1:10": 835_687,
    "q7 1:1:50": 976_094,
    "q7 1:10:1": 8_269,
    "q7 1:50:1": 382,
    "q8": 146_155,
    "spark fraud": 13_409,
}


def main() -> None:
    from benchmarks import pipeline
    from benchmarks.cases import CASES

    for workload in {case.workload.name: case.workload for case in CASES}.values():
        matches = workload.loop(workload.events(workload.rows))
        print(f'    "{workload.name}": {matches:_},', flush=True)
    matches = pipeline.count_by_sql(pipeline.event_file(pipeline.ROWS))
    print(f'    "{pipeline.NAME}": {matches:_},')


if __name__ == "__main__":
    main()
