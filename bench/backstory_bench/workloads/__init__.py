"""All workloads of the matrix, one file for each kind, and their suites; ordinary work."""

from __future__ import annotations

import json
from importlib import resources

from . import (
    archive,
    beyond,
    blast,
    compile_gcc,
    compile_latex,
    compile_package,
    computing,
    cp,
    data_science,
    ftp,
    gpu,
    http_client,
    http_server,
    lmbench,
    nextflow,
    ordinary,
    postmark,
    splash,
    unixbench,
    utils,
    vcs,
)
from .base import Instance

_GROUPS = (
    blast,
    splash,
    compile_package,
    compile_gcc,
    compile_latex,
    data_science,
    ftp,
    http_client,
    http_server,
    lmbench,
    postmark,
    archive,
    utils,
    vcs,
    cp,
    unixbench,
    beyond,
    nextflow,
    computing,
    gpu,
)

INSTANCES: dict[str, Instance] = {i.key: i for group in _GROUPS for i in group.INSTANCES}
"""All instances of the matrix, by `group/name`."""

ORDINARY: dict[str, Instance] = {
    **{i.key: i for i in ordinary.INSTANCES},
    **{key: INSTANCES[key] for key in ordinary.OF_MATRIX},
}
"""Ordinary work, by `group/name`. Some of it belongs to the matrix, too."""

EVERY = INSTANCES | ORDINARY

PAPER_GROUPS = (
    "BLAST",
    "CPU bench SPLASH-3",
    "Compile w/Spack",
    "Compile w/gcc",
    "Compile w/latex",
    "Data science Notebook",
    "Data science python",
    "FTP srv/client",
    "HTTP srv/client",
    "HTTP srv/traffic",
    "IO bench lmbench",
    "IO bench postmark",
    "Tar Archive",
    "Tar Unarchive",
    "Utils",
    "Utils bash",
    "VCS checkout",
    "cp",
)
"""The rows of table 4 of the paper."""


def minimal() -> dict[str, float]:
    """Returns the chosen subset with its weights.

    `subset --write` wrote it to data/minimal.json.
    """
    text = resources.files(__package__).joinpath("../data/minimal.json").read_text()
    return {str(key): float(weight) for key, weight in json.loads(text)["weights"].items()}


def suite(name: str) -> list[Instance]:
    """Returns the instances of a suite.

    A suite is `full`, `minimal`, `groups` (of each group the first that can run here), or the name
    of a group.

    # Errors
    `KeyError` if the name is unknown.
    """
    if name == "full":
        return list(INSTANCES.values())
    if name == "minimal":
        return [INSTANCES[key] for key in minimal()]
    if name == "groups":
        first: dict[str, Instance] = {}
        for instance in INSTANCES.values():
            if instance.group not in first and instance.lacking() is None:
                first[instance.group] = instance
        return list(first.values())
    return select([name])


def select(names: list[str]) -> list[Instance]:
    """Selects instances by group, name, or `group/name`. The matrix comes before other work."""

    def named(name: str, among: dict[str, Instance]) -> list[Instance]:
        return [i for i in among.values() if name in (i.key, i.group, i.name)]

    found = []
    for name in names:
        some = named(name, INSTANCES) or named(name, ORDINARY)
        if not some:
            raise KeyError(f"there is no workload, group or suite {name!r}; see: backstory-bench list workloads")
        found.extend(some)
    return list(dict.fromkeys(found))


__all__ = ["EVERY", "INSTANCES", "ORDINARY", "PAPER_GROUPS", "Instance", "minimal", "select", "suite"]
