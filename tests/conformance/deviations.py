"""Where a DeviceArray does not do what a plain JAX array does, and why.

The list is ``deviations.csv``, since the page on DeviceArray shows the same file. A case listed
there must differ from JAX: if it begins to agree, the test fails, and the line goes. A case not
listed must agree.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final


def _read() -> dict[str, str]:
    text = Path(__file__).with_suffix(".csv").read_text("utf-8")
    return {row["Case"]: row["What differs"] for row in csv.DictReader(text.splitlines())}


DEVIATIONS: Final = _read()
