"""Runs a task in a new interpreter that backstory records, and returns its result.

The task and the result are passed in memory files (``memfd_create``), so that they add no file on
disk to the run.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import BackstoryError, NotObservedError

if TYPE_CHECKING:
    from .store import Run, Store, StrPath


@dataclass
class Call:
    """A call of a function with its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Outcome:
    """The result of a task: a value, or an exception with its traceback as text."""

    value: Any = None
    error: BaseException | None = None
    trace: str = ""


class RemoteTraceback(Exception):
    """The traceback of an exception in the recorded interpreter."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def perform(task: Any, name: str | None, store: StrPath | Store | None) -> tuple[Any, Run]:
    """Performs a task in a recorded child. Raises the exception that the task raised."""
    from .recording import start

    with os.fdopen(os.memfd_create("backstory-task"), "w+b", buffering=0) as given:
        with os.fdopen(os.memfd_create("backstory-result"), "w+b", buffering=0) as made:
            wanted = {"path": sys.path, "name": name or "block", "task": dumped(task)}
            given.write(pickle.dumps(wanted))
            given.seek(0)
            command = [sys.executable, "-m", "backstory._child", given.fileno(), made.fileno()]
            run, status = start(
                [str(word) for word in command],
                name=name,
                store=store,
                descriptors=[given.fileno(), made.fileno()],
            )
            made.seek(0)
            text = made.read()
    if not text:
        raise BackstoryError(
            f"the recorded interpreter ended with status {status} and returned no result"
        )
    outcome = pickle.loads(text)
    if outcome.error is not None:
        outcome.error.backstory_run = run
        raise outcome.error from RemoteTraceback(outcome.trace)
    return outcome.value, run


def dumped(value: Any) -> bytes:
    """Pickles a value for another interpreter, including functions of ``__main__``."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise NotObservedError(
            f"a value cannot be moved to the recorded interpreter and back: {error}"
        ) from error


def main(given: int, made: int) -> None:
    """Performs the task read from descriptor ``given``, and writes its outcome to ``made``."""
    from . import _marks

    with os.fdopen(given, "rb") as file:
        wanted = pickle.loads(file.read())
    # The task may name modules that only the parent's module search path finds.
    sys.path[:] = wanted["path"]
    try:
        task = pickle.loads(wanted["task"])
        _marks.begin([wanted["name"]])
        outcome = Outcome(value=_result(task))
    except BaseException as error:
        outcome = Outcome(error=error, trace=traceback.format_exc())
    _marks.end()
    with os.fdopen(made, "wb") as file:
        file.write(_portable(outcome))


def _result(task: Any) -> Any:
    if isinstance(task, Call):
        return task.function(*task.args, **task.kwargs)
    return task.perform()


def _portable(outcome: Outcome) -> bytes:
    """Pickles the outcome, or an error that says why the outcome cannot be pickled."""
    try:
        return dumped(outcome)
    except NotObservedError as failure:
        if outcome.error is None:
            return dumped(Outcome(error=failure, trace=str(failure)))
        plain = BackstoryError(f"{type(outcome.error).__name__}: {outcome.error}")
        return dumped(Outcome(error=plain, trace=outcome.trace))


if __name__ == "__main__":
    # Pickled classes are found under this module's name, not under `__main__`.
    from backstory._child import main as perform_task

    perform_task(int(sys.argv[1]), int(sys.argv[2]))
