"""Records commands, functions and blocks.

The recorder is loaded when a program starts. It cannot be added to an interpreter that already
runs, so the recorded code runs in a child process:

- ``run`` starts a command.
- A call of a ``step`` runs in a new interpreter, which receives the arguments and returns the
  result.
- The block of ``record`` runs in a new interpreter. It receives the variables that the block uses,
  and returns those that the block assigned or changed.

An interpreter may itself be recorded, by ``backstory record -- python …`` or as the kernel
``backstory-python3``. There the block or call runs in place, as an activity of the run.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, overload

from . import _marks, _program
from .errors import BackstoryError, MisuseError, NotObservedError
from .store import Run, Store, StrPath

F = TypeVar("F", bound=Callable[..., Any])


def run(
    command: Sequence[StrPath],
    *,
    name: str | None = None,
    store: StrPath | Store | None = None,
    cwd: StrPath | None = None,
    env: dict[str, str] | None = None,
    options: Sequence[str] = (),
    check: bool = True,
) -> Run:
    """Records a command and returns its run.

    ``options`` are further options of ``backstory record``. With ``check``, a command that fails
    raises ``subprocess.CalledProcessError``.
    """
    recorded, status = start(command, name=name, store=store, cwd=cwd, env=env, options=options)
    if check and status != 0:
        raise subprocess.CalledProcessError(status, [os.fspath(word) for word in command])
    return recorded


def start(
    command: Sequence[StrPath],
    *,
    name: str | None,
    store: StrPath | Store | None,
    cwd: StrPath | None = None,
    env: dict[str, str] | None = None,
    options: Sequence[str] = (),
    descriptors: Sequence[int] = (),
) -> tuple[Run, int]:
    """Records a command. Returns its run and the exit status of ``backstory record``."""
    directory = store.path if isinstance(store, Store) else store
    words: list[StrPath] = [_program.program(), "record", *options]
    if directory is not None:
        words += ["--store", directory]
    if name is not None:
        words += ["--name", run_name(name)]
    with tempfile.TemporaryDirectory(prefix="backstory-") as scratch:
        summary = os.path.join(scratch, "summary.json")
        words += ["--json-summary", summary, "--", *command]
        # The output of this process comes before that of the command.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        status = subprocess.run(
            words, cwd=cwd, env=env, pass_fds=descriptors, check=False
        ).returncode
        try:
            with open(summary, encoding="utf-8") as file:
                recorded = json.load(file)["run"]
        except (FileNotFoundError, ValueError):
            raise BackstoryError(
                f"the command was not recorded: backstory record ended with status {status}"
            ) from None
    return Run(Store(directory), recorded), status


def run_name(text: str) -> str:
    """Returns a name that ``backstory record --name`` accepts: printable, without blanks."""
    name = "-".join("".join(c if c.isprintable() else " " for c in text).split()).lstrip("-")
    while len(name.encode("utf-8", "surrogateescape")) > 200:
        name = name[:-1]
    return name or "run"


class record:
    """Records the block of a ``with`` statement.

    >>> with bs.record(name="clean") as recorded:  # doctest: +SKIP
    ...     frame = pandas.read_csv("raw.csv").dropna()
    ...     frame.to_csv("clean.csv")
    >>> recorded.run.files()  # doctest: +SKIP

    If the interpreter is not recorded, the block runs in a new interpreter with copies of the
    variables that the block names. Afterwards the variables that the block assigned or changed have
    their new values here. All these values must be picklable. Variables of other modules, open
    files, figures and threads stay in the child. ``return``, ``yield``, ``await``, ``break`` and
    ``continue`` cannot leave the block.

    In a recorded interpreter the block is an activity of the surrounding run, which ends with the
    interpreter. There ``run`` is ``None``.
    """

    def __init__(self, name: str | None = None, *, store: StrPath | Store | None = None) -> None:
        self.name = name
        self.run: Run | None = None
        self._store = store
        self._mode: Any = None

    def __enter__(self) -> record:
        frame = sys._getframe(1)
        if _marks.is_recorded():
            location = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            _marks.begin([self.name or "block", location])
            self._mode = "nested"
            return self
        from . import _blocks

        block = _blocks.of_frame(frame)
        variables, self.run = _blocks.in_child(block, _blocks.scope(frame), self.name, self._store)
        self._mode = _blocks.Skipper(frame, block, variables)
        self._mode.skip()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._mode == "nested":
            _marks.end()
            return False
        return bool(self._mode.done(error))


class _Step:
    """A function whose calls are recorded."""

    def __init__(
        self, function: Callable[..., Any], name: str | None, store: StrPath | Store | None
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__qualname__
        self.run: Run | None = None
        """The run of the last call. ``None`` if the interpreter itself is recorded."""
        self._store = store

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _marks.is_recorded():
            code = getattr(self.function, "__code__", None)
            location = f"{code.co_filename}:{code.co_firstlineno}" if code else ""
            _marks.begin([self.name, location])
            try:
                return self.function(*args, **kwargs)
            finally:
                _marks.end()
        from . import _child

        task = _child.Call(self._portable(), args, kwargs)
        result, self.run = _child.perform(task, self.name, self._store)
        return result

    def _portable(self) -> Callable[..., Any]:
        """Returns a function that the child can find: this step by its name, or the code itself."""
        return self.function if self.function.__module__ == "__main__" else self

    def __reduce__(self) -> Any:
        if self.function.__module__ == "__main__":
            return (_Step, (self.function, self.name, None))
        return (_named, (self.function.__module__, self.function.__qualname__))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)


def _named(module: str, name: str) -> Any:
    """Returns a step by the name of its function."""
    import importlib

    found: Any = importlib.import_module(module)
    for part in name.split("."):
        if part == "<locals>":
            raise NotObservedError(
                f"the recorded interpreter cannot find {module}.{name}: "
                "define the step at the level of its module"
            )
        found = getattr(found, part)
    return found


@overload
def step(function: F) -> F: ...
@overload
def step(*, name: str | None = None, store: StrPath | Store | None = None) -> Callable[[F], F]: ...
def step(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    store: StrPath | Store | None = None,
) -> Any:
    """Makes each call of a function a recorded step: ``@bs.step`` or ``@bs.step(name="clean")``.

    A call runs in a new interpreter, which receives the arguments and returns the result or raises
    the exception here. All of these must be picklable. In a recorded interpreter the call is an
    activity of the surrounding run. The attribute ``run`` of the function is the run of the last
    call.
    """
    if function is None:
        return lambda function: _Step(function, name, store)
    if not callable(function):
        raise MisuseError(f"a step is made of a function, not of {function!r}")
    return _Step(function, name, store)
