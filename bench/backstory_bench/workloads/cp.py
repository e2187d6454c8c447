"""cp: a tree of many small files, and a tree of few large ones."""

from __future__ import annotations

from .base import Instance, program, tree, tree_files

GROUP = "cp"


def _copy(name: str, files: int, size: int) -> Instance:
    return Instance(
        GROUP,
        name,
        f"cp -a of {files} files of {size} bytes",
        "rm -rf copy; cp -a tree copy",
        (program("cp", "coreutils"),),
        lambda root: tree(root, "tree", files, size),
        ("copy",),
        ("copy",),
        truth=lambda root: tree_files(root, "tree", "copy"),
    )


INSTANCES = [_copy("small", 1500, 800), _copy("large", 20, 4_000_000)]
