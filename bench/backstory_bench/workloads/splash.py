"""CPU bench SPLASH-3: ten programs on one processor, from a built tree."""

from __future__ import annotations

from pathlib import Path

from .base import Instance, Need, built
from .sources import source

GROUP = "CPU bench SPLASH-3"

# Name, directory under codes/, program, and arguments (run in the program's directory).
PROGRAMS: tuple[tuple[str, str, str, str], ...] = (
    ("fft", "kernels/fft", "FFT", "-p1 -m18"),
    ("lu", "kernels/lu/contiguous_blocks", "LU", "-p1 -n512"),
    ("radix", "kernels/radix", "RADIX", "-p1 -n1048576"),
    ("cholesky", "kernels/cholesky", "CHOLESKY", "-p1 <inputs/tk15.O"),
    ("nsquared", "apps/water-nsquared", "WATER-NSQUARED", "<inputs/n512-p1"),
    ("spatial", "apps/water-spatial", "WATER-SPATIAL", "<inputs/n512-p1"),
    ("ocean", "apps/ocean/contiguous_partitions", "OCEAN", "-p1 -n258"),
    ("radiosity", "apps/radiosity", "RADIOSITY", "-p 1 -ae 5000 -bf 0.1 -en 0.05 -room -batch"),
    ("raytrace", "apps/raytrace", "RAYTRACE", "-p1 -m64 inputs/teapot.env"),
    ("volrend", "apps/volrend", "VOLREND", "1 inputs/head-scaleddown2 4"),
)


def _program(name: str, directory: str, binary: str, arguments: str) -> Instance:
    def prepare(root: Path) -> None:
        tree = source("splash-3").directory
        if tree is None:
            raise FileNotFoundError(source("splash-3").reason())
        (root / "splash").symlink_to(tree / "codes" / directory)

    need: Need = built("splash-3", f"codes/{directory}/{binary}")
    body = f"(cd splash && ./{binary} {arguments}) >out.txt"
    return Instance(GROUP, name, f"{binary} {arguments}", body, (need,), prepare, ("out.txt",))


INSTANCES = [_program(*row) for row in PROGRAMS]
