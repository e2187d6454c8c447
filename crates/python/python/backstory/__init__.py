"""Records how each file was made, and answers questions about it.

>>> import backstory as bs
>>> bs.run(["sort", "-o", "sorted.txt", "words.txt"], name="sort")  # doctest: +SKIP
>>> bs.Store().of("sorted.txt").to_pandas()  # doctest: +SKIP

- ``Store`` asks questions about recorded runs.
- ``run``, ``record`` and ``step`` record commands, blocks and functions.
- ``%load_ext backstory`` adds the magics ``%backstory`` and ``%%backstory`` to a notebook.
- The kernel ``backstory-python3`` records a notebook, cell by cell.
- ``pytest --backstory`` records the inputs of each test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import __version__
from .errors import (
    BackstoryError,
    BackstoryWarning,
    MisuseError,
    NotFoundError,
    NotObservedError,
)
from .store import Run, Runs, Store

if TYPE_CHECKING:
    from ._marks import is_recorded
    from .differences import Diff
    from .lineage import Lineage
    from .recording import record, run, step
    from .tables import Answer

__all__ = [
    "Answer",
    "BackstoryError",
    "BackstoryWarning",
    "Diff",
    "Lineage",
    "MisuseError",
    "NotFoundError",
    "NotObservedError",
    "Run",
    "Runs",
    "Store",
    "__version__",
    "is_recorded",
    "record",
    "run",
    "step",
]

_LATER = {
    "Answer": "tables",
    "Diff": "differences",
    "Lineage": "lineage",
    "is_recorded": "_marks",
    "record": "recording",
    "run": "recording",
    "step": "recording",
}


def __getattr__(name: str) -> Any:
    """Imports the parts that few programs need, on first use."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Adds the magics for ``%load_ext backstory``."""
    from .magics import BackstoryMagics

    shell.register_magics(BackstoryMagics)
