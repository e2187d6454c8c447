"""The program of `bench/content-costs`, which measures parts of the work on contents.

It is a Rust package of its own, since it builds BLAKE3 with a feature that the released program
lacks. The first call compiles it, with the options of a release.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Sequence
from pathlib import Path

CRATE = Path(__file__).resolve().parents[1] / "content-costs"
ROOT = CRATE.parents[1]


def built() -> Path:
    """Compiles the program, and returns its path.

    Raises
    ------
    SystemExit
        This is no checkout.
    """
    if not CRATE.is_dir():
        raise SystemExit(f"backstory-bench: there is no {CRATE}: run the command from a checkout")
    target = ROOT / "target" / "content-costs"
    words = ["cargo", "build", "--quiet", "--release", "--manifest-path", str(CRATE / "Cargo.toml")]
    # Options of the compilers of C are in a file of the checkout.
    subprocess.run([*words, "--target-dir", str(target)], cwd=ROOT, check=True)
    return target / "release" / CRATE.name


def measured(program: Path, words: Sequence[str]) -> list[dict[str, str]]:
    """Runs the program with some arguments, and returns the rows that it prints.

    Raises
    ------
    SystemExit
        It fails.
    """
    done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"backstory-bench: {' '.join(words)}: {done.stderr.strip()[-300:]}")
    return list(csv.DictReader(done.stdout.splitlines()))
