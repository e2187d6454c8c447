"""GPU: a CUDA program and the training of a network, on a real device.

Both end with a status other than 0 if CUDA fails, and their outputs are the same in every run. A
machine without a GPU skips them, with the reason.
"""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from importlib import resources
from pathlib import Path

from .base import Instance, Need, find, module, python

GROUP = "GPU"
_FLOATS = 1 << 20
_IMAGES = 512


def _device() -> str | None:
    """Returns the reason why no GPU can be used, or `None`."""
    if find("nvidia-smi") is None:
        return "there is no GPU: nvidia-smi is not installed"
    seen = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return None if seen.returncode == 0 and "GPU" in seen.stdout else "there is no GPU: `nvidia-smi -L` lists none"


def _compiler() -> str | None:
    return None if find("nvcc") else "nvcc is not installed (the CUDA toolkit, of the driver's version)"


def _copy(name: str, root: Path) -> None:
    with resources.as_file(resources.files(__package__).joinpath(f"../data/gpu/{name}")) as path:
        shutil.copy(path, root / name)


def _floats(rng: random.Random, count: int) -> bytes:
    return struct.pack(f"<{count}f", *(rng.random() for _ in range(count)))


def _sums(root: Path) -> None:
    rng = random.Random(7)
    for name in ("a.bin", "b.bin"):
        (root / name).write_bytes(_floats(rng, _FLOATS))
    _copy("sums.cu", root)
    subprocess.run(["nvcc", "-O2", "-o", "sums", "sums.cu"], cwd=root, check=True, capture_output=True)


def _array(path: Path, kind: str, shape: tuple[int, ...], body: bytes) -> None:
    """Writes an array in NumPy's format (NEP 1), version 1.0."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(-(10 + len(header) + 1) % 64 + len(header)) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)


def _images(root: Path) -> None:
    rng = random.Random(7)
    _array(root / "images.npy", "<f4", (_IMAGES, 1, 28, 28), _floats(rng, _IMAGES * 28 * 28))
    labels = struct.pack(f"<{_IMAGES}q", *(rng.randrange(10) for _ in range(_IMAGES)))
    _array(root / "labels.npy", "<i8", (_IMAGES,), labels)
    _copy("train.py", root)


def _steps(name: str, title: str, arguments: str) -> Instance:
    """A workload whose figure is the time of the training steps alone."""
    return Instance(
        GROUP,
        name,
        title,
        f"{python()} train.py {arguments}",
        (Need(_device), module("torch", "numpy")),
        _images,
        ("model.pt",),
        ("model.pt",),
        fixed=True,
        figure=r"^seconds: ([\d.]+)$",
    )


INSTANCES = [
    Instance(
        GROUP,
        "cuda",
        "a CUDA program: start, copies, 20,000 kernels",
        "./sums 20000",
        (Need(_device), Need(_compiler)),
        _sums,
        ("sums.bin",),
        ("sums.bin",),
        stdout=True,
    ),
    Instance(
        GROUP,
        "torch-train",
        "PyTorch: the start of Python and CUDA, and 400 training steps",
        f"{python()} train.py 400 2>times.txt",
        (Need(_device), module("torch", "numpy")),
        _images,
        ("model.pt", "times.txt"),
        ("model.pt",),
        stdout=True,
    ),
    _steps("torch-steps", "PyTorch: the time of 2,000 training steps", "2000"),
    _steps("torch-wide", "PyTorch: the time of 300 training steps that keep the GPU busy", "300 wide"),
]
