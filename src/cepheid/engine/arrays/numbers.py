"""Arrow arrays that NumPy can hold without a copy: integers, and times as integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def is_exact(type_: pa.DataType) -> bool:
    """Whether the values of this type are integers, in the same order."""
    return bool(
        pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    )


def in_numpy(array: pa.Array) -> NDArray[np.integer]:
    """The values of such a type, none of which is NULL."""
    type_ = array.type
    if not pa.types.is_integer(type_):
        array = array.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    return np.asarray(array.to_numpy())
