"""Runs the block of a ``with`` statement, or a notebook cell, in a child interpreter.

In: the source of the block, and the variables around it. Out: the variables that the block assigned
or changed. Invariant: a block runs exactly once. A block for which this cannot be guaranteed raises
``NotObservedError`` before it runs. The parent interpreter skips the block.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import linecache
import pickle
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from . import _child
from .errors import BackstoryWarning, NotObservedError

if TYPE_CHECKING:
    from .store import Run, Store, StrPath

#: Statements that would transfer control from the block to the parent's code.
_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)

_ADVICE = (
    "put it into a function with @bs.step, or record the whole program: "
    "backstory record -- python PROGRAM"
)


@dataclass
class Block:
    """Source code, with the names that it uses and assigns."""

    source: str
    file: str
    line: int
    used: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)


@dataclass
class _Task:
    """A block with its variables, sent to the child."""

    source: str
    file: str
    line: int
    variables: dict[str, Any]
    modules: dict[str, str]
    assigned: set[str]

    def perform(self) -> dict[str, Any]:
        """Runs the block. Returns the variables that it assigned or changed."""
        main = sys.modules["__main__"]
        space = main.__dict__
        space.update(self.variables)
        for name, module in self.modules.items():
            space[name] = importlib.import_module(module)
        before = {name: _child.dumped(value) for name, value in self.variables.items()}
        code = compile("\n" * (self.line - 1) + self.source, self.file, "exec")
        exec(code, space)
        made: dict[str, bytes] = {}
        left: dict[str, str] = {}
        modules: dict[str, str] = {}
        for name in sorted({*self.assigned, *before} & space.keys()):
            value = space[name]
            if isinstance(value, ModuleType):
                modules[name] = value.__name__
                continue
            try:
                text = _child.dumped(value)
            except NotObservedError as error:
                left[name] = str(error.__cause__)
                continue
            if name in self.assigned or before[name] != text:
                made[name] = text
        return {"made": made, "left": left, "modules": modules}


def of_source(source: str, file: str) -> Block:
    """Returns the block of a notebook cell."""
    return _block(ast.parse(source, file).body, source, file, 1)


def of_frame(frame: FrameType) -> Block:
    """Returns the block of the ``with`` statement that the frame is executing."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    lines = linecache.getlines(file, frame.f_globals)
    if not lines:
        raise NotObservedError(
            f"the source of {file} is not available, so its block cannot run in a "
            f"recorded interpreter: {_ADVICE}"
        )
    try:
        tree = ast.parse("".join(lines), file)
    except SyntaxError as error:
        raise NotObservedError(f"{file} has changed since it was loaded: {error}") from error
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and node.lineno <= line < node.body[0].lineno
    ]
    if not found:
        raise NotObservedError(
            f"{file}:{line}: the block must begin on a line below its with statement"
        )
    node = max(found, key=lambda node: node.lineno)
    if len(node.items) > 1:
        raise NotObservedError(
            f"{file}:{line}: give record a with statement of its own, inside the others"
        )
    end = node.body[-1].end_lineno or node.body[-1].lineno
    source = textwrap.dedent("".join(lines[node.body[0].lineno - 1 : end]))
    return _block(node.body, source, file, node.body[0].lineno)


def _block(body: list[ast.stmt], source: str, file: str, line: int) -> Block:
    block = Block(source, file, line)
    for statement in body:
        for node in _own(statement):
            if isinstance(node, _LEAVING):
                word = type(node).__name__.lower()
                raise NotObservedError(
                    f"{file}:{node.lineno}: {word} cannot leave a recorded block"
                )
    _refuse_jumps(body, file)
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                stores = isinstance(node.ctx, (ast.Store, ast.Del))
                (block.assigned if stores else block.used).add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                block.assigned.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    block.assigned.add((alias.asname or alias.name).split(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                block.assigned.add(node.name)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                block.used.add(node.target.id)
    return block


def _own(node: ast.AST) -> Iterator[Any]:
    """Yields a node and its descendants, without the bodies of functions."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)


def _refuse_jumps(body: list[ast.stmt], file: str) -> None:
    """Raises an error for ``break`` and ``continue`` that belong to a loop around the block."""
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue)):
            word = type(node).__name__.lower()
            raise NotObservedError(f"{file}:{node.lineno}: {word} cannot leave a recorded block")
        inner: list[ast.stmt] = list(getattr(node, "orelse", []))
        if not isinstance(
            node,
            (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
        ):
            inner += [*getattr(node, "body", []), *getattr(node, "finalbody", [])]
            for handler in getattr(node, "handlers", []):
                inner += handler.body
            for case in getattr(node, "cases", []):
                inner += case.body
        _refuse_jumps(inner, file)


def scope(frame: FrameType) -> Mapping[str, Any]:
    """Returns the variables that are visible in the frame."""
    return {**frame.f_globals, **frame.f_locals}


def in_child(
    block: Block, around: Mapping[str, Any], name: str | None, store: StrPath | Store | None
) -> tuple[dict[str, Any], Run]:
    """Runs a block in a recorded interpreter. Returns the changed variables, and the run."""
    needed = _needed(block, around)
    modules = {
        name: value.__name__ for name, value in needed.items() if isinstance(value, ModuleType)
    }
    variables = {name: value for name, value in needed.items() if name not in modules}
    for variable, value in variables.items():
        try:
            _child.dumped(value)
        except NotObservedError as error:
            raise NotObservedError(
                f"the variable {variable} of the block cannot be moved to the recorded "
                f"interpreter: {error.__cause__}"
            ) from error
    task = _Task(block.source, block.file, block.line, variables, modules, block.assigned)
    made, run = _child.perform(task, name, store)
    found = {variable: pickle.loads(text) for variable, text in made["made"].items()}
    for variable, module in made["modules"].items():
        found[variable] = importlib.import_module(module)
    for variable, why in made["left"].items():
        warnings.warn(
            f"the variable {variable} stays in the recorded interpreter: {why}",
            BackstoryWarning,
            stacklevel=3,
        )
    return found, run


def _needed(block: Block, around: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the variables that the block uses, directly or through functions of ``__main__``."""
    needed: dict[str, Any] = {}
    waiting = sorted(block.used)
    while waiting:
        name = waiting.pop()
        if name in needed or name not in around or name.startswith("__"):
            continue
        value = needed[name] = around[name]
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType) and getattr(value, "__module__", "") == "__main__":
            waiting.extend(_names(code))
    return needed


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


class _Skip(BaseException):
    """Raised by the trace function to leave the block before its first line."""


class Skipper:
    """Prevents a frame from running a block, and assigns the child's variables in the frame.

    A trace function raises ``_Skip`` at the first line of the block. ``record.__exit__`` suppresses
    that exception.
    """

    def __init__(self, frame: FrameType, block: Block, variables: dict[str, Any]) -> None:
        self._frame, self._block, self._variables = frame, block, variables
        self._former = (sys.gettrace(), frame.f_trace)

    def skip(self) -> None:
        """Sets the trace function that leaves the block at its first line."""
        self._frame.f_trace = self._leave
        sys.settrace(lambda *_: None)

    def _leave(self, frame: FrameType, event: str, _: Any) -> Any:
        if event != "line":
            return self._leave
        self._restore()
        _assign(frame, self._variables)
        raise _Skip

    def _restore(self) -> None:
        trace, of_frame = self._former
        sys.settrace(trace)
        self._frame.f_trace = of_frame

    def done(self, error: BaseException | None) -> bool:
        """Returns true if the block was skipped. Raises ``NotObservedError`` otherwise."""
        if isinstance(error, _Skip):
            return True
        self._restore()
        location = f"{self._block.file}:{self._block.line}"
        raise NotObservedError(
            f"{location}: this interpreter ran the block, too, because a trace function could not "
            f"be set: {_ADVICE}"
        ) from error


def _assign(frame: FrameType, variables: dict[str, Any]) -> None:
    if frame.f_locals is frame.f_globals:
        frame.f_globals.update(variables)
        return
    names = {*frame.f_code.co_varnames, *frame.f_code.co_cellvars, *frame.f_code.co_freevars}
    local = {name: value for name, value in variables.items() if name in names}
    frame.f_globals.update({name: value for name, value in variables.items() if name not in names})
    # Before Python 3.13 `f_locals` is a copy, which must be written back.
    frame.f_locals.update(local)
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
