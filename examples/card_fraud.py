"""Find stolen cards in card transactions (NEXT CEP, section 1.1).

    python examples/card_fraud.py

The same on the command line, and on Spark with one option more (--runtime spark):

    cepheid generate fraud --rows 50_000 --output fraud.parquet
    cepheid run examples/card_fraud.cep --input fraud.parquet --time ts --tie id
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import cepheid as cep
from cepheid.workloads import fraud

QUERY = Path(__file__).with_suffix(".cep").read_text()


def main(rows: int = 50_000) -> pa.Table:
    transactions = fraud.generate(rows)
    found = cep.match(transactions, QUERY, time="ts", tie="id")
    print(found.slice(0, 5).to_pandas().to_string(index=False))
    # The generator knows which purchases it planted, so we can see how well this works.
    planted = transactions.filter(pc.field("planted").is_valid())
    large = set(planted.filter(pc.field("amount") > 250)["id"].to_pylist())
    hits = large & set(found["id"].to_pylist())
    print(f"{found.num_rows} alarms; {len(hits)} of {len(large)} planted frauds are among them")
    return found


if __name__ == "__main__":
    main()
