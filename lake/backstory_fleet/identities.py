"""Numbers and names that depend on nothing but their keys: one seed gives one fleet.

All functions work on arrays. A content is a number of 64 bits, which `digests` expands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[Any, np.dtype[np.uint64]]

_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], dtype="S2")


def mixed(*keys: Any) -> Numbers:
    """A number of 64 bits for some keys, each an array or a number (splitmix64)."""
    state: Numbers = np.uint64(0x9E3779B97F4A7C15) * np.ones(1, np.uint64)
    for key in keys:
        # Arithmetic modulo 2**64 is meant.
        with np.errstate(over="ignore"):
            state = state + np.asarray(key).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state


def shares(*keys: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A number from 0 to 1 for some keys."""
    return (mixed(*keys) >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def below(bound: Any, *keys: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A whole number from 0 to `bound` - 1 for some keys."""
    return np.minimum((shares(*keys) * bound).astype(np.int64), np.asarray(bound) - 1)


def digests(contents: Numbers, known: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Array:
    """The digests of contents, as 64 hexadecimal digits; NULL where one is not known."""
    words = np.stack([mixed(contents, part) for part in range(4)], axis=1)
    texts = _HEX[words.view(np.uint8).reshape(len(contents), 32)]
    joined = np.ascontiguousarray(texts).view("S64").reshape(-1)
    return pa.array(joined, pa.binary(), mask=~known).cast(pa.string())


def tokens(*keys: Any) -> pa.Array:
    """Six characters for some keys, as in the names of temporary files."""
    words = mixed(*keys)
    texts = _HEX[words.view(np.uint8).reshape(len(words), 8)[:, :3]]
    return pa.array(np.ascontiguousarray(texts).view("S6").reshape(-1), pa.binary()).cast(
        pa.string()
    )


def name_of(number: int, letters: int) -> str:
    """A short name like a run's id."""
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    return "".join(alphabet[number >> 5 * at & 31] for at in reversed(range(letters)))


def uuid_of(*keys: int) -> str:
    """A text like a UUID."""
    high, low = int(mixed(*keys)[0]), int(mixed(*keys, 1)[0])
    text = f"{high:016x}{low:016x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
