"""PROBE: library interposition; with and without the transcription that makes its log readable."""

from __future__ import annotations

import os

from .base import Collector, from_environment

_BUILT = from_environment("PROBE", "the built `probe` command (and PROBE_LIB to its library's folder)")
_ORIGIN = "https://github.com/charmoniumQ/PROBE and set PROBE and PROBE_LIB"

COLLECTORS = [
    Collector(
        "probe-raw",
        lambda log: [os.environ["PROBE"], "record", "-n", "-o", str(log / "probe_record")],
        _BUILT,
        what="operations by library interposition",
        origin=_ORIGIN,
    ),
    Collector(
        "probe",
        lambda log: [os.environ["PROBE"], "record", "-o", str(log / "probe_log")],
        _BUILT,
        what="the same, and its log transcribed at the end",
        origin=_ORIGIN,
    ),
]
