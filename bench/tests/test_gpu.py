"""The programs of the group `GPU`, as far as they can be tested without a device."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def test_the_cuda_program_looks_at_the_address_of_the_recorder() -> None:
    source = (TOP / "bench/backstory_bench/data/gpu/sums.cu").read_text()
    header = (TOP / "crates/abi/include/backstory_abi.h").read_text()
    looked = re.search(r"home = (0x[0-9a-f]+)ull", source)
    defined = re.search(r"^#define BS_HOME (0x[0-9a-f]+)ull", header, re.M)
    assert looked and defined and looked[1] == defined[1]
    library = re.search(r'^#define BS_PRELOAD_NAME "([^"]+)"', header, re.M)
    assert library and f'"/{library[1]}"' in source
