"""Find stolen products in the readings of a shop's RFID tags (SASE, section 2).

    python examples/shoplifting.py

The same on the command line:

    cepheid generate rfid --rows 20_000 --output rfid.parquet
    cepheid run examples/shoplifting.cep --input rfid.parquet --time ts --type type
"""

from pathlib import Path

import pyarrow as pa

import cepheid as cep
from cepheid.workloads import rfid

QUERY = Path(__file__).with_suffix(".cep").read_text()


def main(rows: int = 20_000) -> pa.Table:
    readings = rfid.generate(rows)
    stolen = cep.match(readings, QUERY, time="ts", type="type")
    print(f"{stolen.num_rows} products left the shop unpaid; the first of them:")
    print(stolen.slice(0, 5).to_pandas().to_string(index=False))
    return stolen


if __name__ == "__main__":
    main()
