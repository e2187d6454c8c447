"""The Jupyter kernel ``backstory-python3``: ipykernel under ``backstory record``.

The session of a notebook is one run. Each cell is an activity of the run. The activity's name is
the number of the cell and its source. The store answers questions about the run after the kernel
has ended.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from . import _marks, _program
from .recording import run_name

#: Set in the recorded interpreter, to prevent an endless loop of starts without a recorder.
_STARTED = "BACKSTORY_KERNEL"


def main() -> None:
    """Starts the kernel under the recorder."""
    if not _marks.is_recorded() and _STARTED not in os.environ:
        _record()
    os.environ.pop(_STARTED, None)
    from ipykernel.kernelapp import IPKernelApp

    app: Any = IPKernelApp.instance()
    app.initialize(sys.argv[1:])
    events = app.kernel.shell.events
    if _marks.is_recorded():
        events.register("pre_run_cell", _Cells().begin)
    app.start()


def _record() -> NoReturn:
    """Replaces this process by ``backstory record`` with the kernel as its command."""
    notebook = os.environ.get("JPY_SESSION_NAME", "")
    name = run_name(os.path.basename(notebook)) if notebook else "notebook"
    program = _program.program()
    os.environ[_STARTED] = "1"
    # Without suppression the log has every read, so that each cell has its own reads.
    words = [program, "record", "--suppress", "off", "--name", name, "--"]
    os.execv(program, [*words, sys.executable, "-m", "backstory.kernel", *sys.argv[1:]])


class _Cells:
    """Begins an activity for each cell.

    This class counts the cells itself. ``execution_count`` is the number of the present cell in
    some versions of IPython, and of the next cell in others.
    """

    def __init__(self) -> None:
        self._count = 0

    def begin(self, info: Any) -> None:
        """Handles the event ``pre_run_cell``."""
        if info.silent or not info.store_history:
            return
        self._count += 1
        _marks.following([f"In [{self._count}]", info.raw_cell.strip()])


if __name__ == "__main__":
    main()
