"""The Jupyter kernel ``backstory-python3``: ipykernel under ``backstory record``.

A notebook's session is one run. Each cell is an activity of it: its name is the number of the cell,
and its source. The run can be asked about when the kernel has ended: it is recorded until then.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from . import _marks, _program
from .recording import run_name

#: Set for the recorded interpreter, so that a recorder that is missing does not start another.
_STARTED = "BACKSTORY_KERNEL"


def main() -> None:
    """Starts the kernel, recorded."""
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
    """Replaces this process by one that records the kernel."""
    notebook = os.environ.get("JPY_SESSION_NAME", "")
    name = run_name(os.path.basename(notebook)) if notebook else "notebook"
    program = _program.program()
    os.environ[_STARTED] = "1"
    # Without suppression the log has each read, so that a cell has its own.
    words = [program, "record", "--suppress", "off", "--name", name, "--"]
    os.execv(program, [*words, sys.executable, "-m", "backstory.kernel", *sys.argv[1:]])


class _Cells:
    """Begins the activity of each cell.

    It counts the cells itself: whether ``execution_count`` is that of the present cell or of the
    next one depends on the version of IPython.
    """

    def __init__(self) -> None:
        self._count = 0

    def begin(self, info: Any) -> None:
        """The hook for ``pre_run_cell``."""
        if info.silent or not info.store_history:
            return
        self._count += 1
        _marks.following([f"In [{self._count}]", info.raw_cell.strip()])


if __name__ == "__main__":
    main()
