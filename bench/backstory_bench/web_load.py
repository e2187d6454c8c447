"""Generators of load for web servers: `ab` (the one of the paper on C2SR) and `wrk`.

`ab` makes a number of requests. `wrk` makes requests for a time, from several threads, so that the
generator is not the slower end. Both answer the rate, the mean time of a request, the number of
requests, and the bytes that arrived. Failed requests are an error.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RATE = re.compile(r"^Requests per second:\s+([\d.]+)", re.MULTILINE)
MEAN = re.compile(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)", re.MULTILINE)
FAILED = re.compile(r"^Failed requests:\s+(\d+)", re.MULTILINE)
TRANSFERRED = re.compile(r"^Total transferred:\s+(\d+) bytes", re.MULTILINE)
COMPLETE = re.compile(r"^Complete requests:\s+(\d+)", re.MULTILINE)

DONE = """
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('\\nRESULT {"requests": %d, "us": %d, "bytes": %d, "mean_us": %f, "failed": %d}\\n',
    summary.requests, summary.duration, summary.bytes, latency.mean,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""
"""A script of wrk that prints exact figures. Its own output rounds them."""

RESULT = re.compile(r"^RESULT (\{.*\})$", re.MULTILINE)


def parsed_ab(printed: str) -> dict[str, float]:
    """Returns the figures that ab printed."""
    found = [pattern.search(printed) for pattern in (RATE, MEAN, TRANSFERRED, COMPLETE, FAILED)]
    if None in found or (found[4] and found[4][1] != "0"):
        raise SystemExit(f"backstory-bench: ab failed: {printed[-800:]}")
    names = ("requests_s", "mean_ms", "body_bytes", "requests")
    return {name: float(match[1]) for name, match in zip(names, found, strict=False) if match}


def parsed_wrk(printed: str) -> dict[str, float]:
    """Returns the figures that the script of wrk printed."""
    found = RESULT.search(printed)
    figures = json.loads(found[1]) if found else {}
    if not figures or figures["failed"] or not figures["requests"]:
        raise SystemExit(f"backstory-bench: wrk failed: {printed[-800:]}")
    return {
        "requests_s": figures["requests"] / (figures["us"] / 1e6),
        "mean_ms": figures["mean_us"] / 1e3,
        "body_bytes": float(figures["bytes"]),
        "requests": float(figures["requests"]),
    }


def _printed(words: list[str]) -> str:
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def ab_words(args: argparse.Namespace, url: str) -> list[str]:
    """Returns the command of ab."""
    words = ["ab", "-q", "-n", str(args.requests), "-c", str(args.clients)]
    return [*words, *(["-k"] if args.keep_alive else []), url]


def wrk_words(args: argparse.Namespace, url: str, script: Path) -> list[str]:
    """Returns the command of wrk. A thread of it serves several connections."""
    threads = min(args.clients, 2)
    words = ["wrk", "-t", str(threads), "-c", str(args.clients), "-d", f"{args.seconds}s", "-s", str(script)]
    return [*words, *([] if args.keep_alive else ["-H", "Connection: close"]), url]


def _ab(args: argparse.Namespace, url: str, _: Path) -> dict[str, float]:
    return parsed_ab(_printed(ab_words(args, url)))


def _wrk(args: argparse.Namespace, url: str, top: Path) -> dict[str, float]:
    script = top / "wrk.lua"
    script.write_text(DONE)
    return parsed_wrk(_printed(wrk_words(args, url, script)))


@dataclass(frozen=True)
class Load:
    """A generator of load."""

    program: str
    package: str
    make: Callable[[argparse.Namespace, str, Path], dict[str, float]]
    """Makes the requests of a URL. It may write into the directory."""

    def missing(self) -> str | None:
        """Returns why the generator cannot run here."""
        there = shutil.which(self.program) is not None
        return None if there else f"{self.program} is not installed (Debian package {self.package})"


LOADS = {"ab": Load("ab", "apache2-utils", _ab), "wrk": Load("wrk", "wrk", _wrk)}
