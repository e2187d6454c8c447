"""PROBE: library interposition, with and without the transcription that makes its log readable."""

from __future__ import annotations

import os
from pathlib import Path

from . import probe_log
from .base import Collector, and_runs, from_environment

_BUILT = from_environment("PROBE", "the built `probe` command (and PROBE_LIB to its library's folder)")
_ORIGIN = "https://github.com/charmoniumQ/PROBE and set PROBE and PROBE_LIB"


def _raw(log: Path) -> list[str]:
    return [os.environ["PROBE"], "record", "-n", "-o", str(log / "probe_record")]


def _transcribed(log: Path) -> list[str]:
    return [os.environ["PROBE"], "record", "-o", str(log / "probe_log")]


COLLECTORS = [
    Collector(
        "probe-raw",
        _raw,
        and_runs(_BUILT, _raw),
        what="operations by library interposition",
        origin=_ORIGIN,
    ),
    Collector(
        "probe",
        _transcribed,
        and_runs(_BUILT, _transcribed),
        what="the same, with a transcription of its log at the end",
        origin=_ORIGIN,
        read=probe_log.read,
    ),
]
