"""Calls of Python functions, for ``backstory record --functions 'module:name*'``.

The package installs ``backstory_functions.pth``, which has each Python look for the variable
``BACKSTORY_FUNCTIONS``. Only a recording of functions has it. Then :func:`install` asks the
interpreter to report calls: by ``sys.monitoring`` since Python 3.12, by ``sys.setprofile`` before.

A call becomes a part of the graph if the function uses files, processes or connections meanwhile.
No function raises an error because of the recording.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from types import CodeType, FrameType
from typing import Any
from zlib import crc32

__all__ = ["install"]

VARIABLE = "BACKSTORY_FUNCTIONS"
# The number of an interpreted function has the highest bit.
_INTERPRETED = 0x80000000
# Tools of sys.monitoring that have no name of their own.
_TOOLS = (4, 3)


class _Recorder:
    """The functions of the recorder that is loaded into this process."""

    def __init__(self, patterns: list[str]) -> None:
        import ctypes

        # Keeps the interpreter's lock: the functions return at once.
        library = ctypes.PyDLL(None)
        self._describe: Callable[[int, bytes, bytes], int] = library.backstory_function
        self.call: Callable[[int], Any] = library.backstory_call
        self.leave: Callable[[int], Any] = library.backstory_return
        library.backstory_function.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p]
        for one in (library.backstory_call, library.backstory_return):
            one.argtypes = [ctypes.c_uint32]
            one.restype = None
        self._patterns = [_split(pattern) for pattern in patterns]
        self.numbers: dict[CodeType, int] = {}

    def number(self, frame: FrameType) -> int:
        """The number of the function that a frame runs. 0: its calls are not recorded."""
        code = frame.f_code
        known = self.numbers.get(code)
        if known is None:
            known = self.numbers[code] = self._new(code, frame.f_globals.get("__name__"))
        return known

    def _new(self, code: CodeType, module: object) -> int:
        file = os.path.basename(code.co_filename)
        modules = [str(module), os.path.splitext(file)[0], file]
        name: str = getattr(code, "co_qualname", code.co_name)
        wanted = any(
            (of is None or any(fnmatchcase(one, of) for one in modules)) and fnmatchcase(name, what)
            for of, what in self._patterns
        )
        if not wanted:
            return 0
        where = f"{file}:{code.co_firstlineno}".encode(errors="surrogateescape")
        text = name.encode(errors="surrogateescape")
        number = _INTERPRETED | crc32(code.co_filename.encode(errors="replace") + text + where)
        return number if self._describe(number, text, where) else 0


def _split(pattern: str) -> tuple[str | None, str]:
    """The file and the name of a pattern. A colon between them is no part of ``::``."""
    at = pattern.find(":")
    while at >= 0:
        if pattern[at + 1 : at + 2] != ":":
            return pattern[:at], pattern[at + 1 :]
        at = pattern.find(":", at + 2)
    return None, pattern


def install() -> bool:
    """Has calls recorded, if this process is recorded with ``--functions``."""
    patterns = os.environ.get(VARIABLE)
    if not patterns:
        return False
    try:
        recorder = _Recorder(patterns.split("\n"))
    except (ImportError, OSError, AttributeError):
        return False  # not recorded, or without ctypes
    if sys.version_info >= (3, 12):
        return _monitor(recorder)
    _profile(recorder)
    return True


def _profile(recorder: _Recorder) -> None:
    import threading

    number, call, leave = recorder.number, recorder.call, recorder.leave

    def report(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found = number(frame)
            if found:
                call(found)
        elif event == "return":
            found = number(frame)
            if found:
                leave(found)

    threading.setprofile(report)
    sys.setprofile(report)


def _monitor(recorder: _Recorder) -> bool:
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - older versions lack it
    free = [one for one in _TOOLS if monitoring.get_tool(one) is None]
    if not free:
        return False
    tool, events, disable = free[0], monitoring.events, monitoring.DISABLE
    numbers, call, leave = recorder.numbers, recorder.call, recorder.leave
    local = events.PY_RETURN | events.PY_YIELD | events.PY_RESUME

    def started(code: CodeType, _: int) -> object:
        found = numbers.get(code)
        if found is None:
            found = recorder.number(sys._getframe(1))
            if found:
                monitoring.set_local_events(tool, code, local)
        if not found:
            return disable
        call(found)
        return None

    def resumed(code: CodeType, _: int) -> None:
        call(numbers[code])

    def left(code: CodeType, _: int, __: object) -> None:
        leave(numbers[code])

    def thrown(code: CodeType, _: int, __: object) -> None:
        found = numbers.get(code)
        if found:
            call(found)

    def unwound(code: CodeType, _: int, __: object) -> None:
        found = numbers.get(code)
        if found:
            leave(found)

    monitoring.use_tool_id(tool, "backstory")
    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.PY_RESUME, resumed)
    monitoring.register_callback(tool, events.PY_RETURN, left)
    monitoring.register_callback(tool, events.PY_YIELD, left)
    monitoring.register_callback(tool, events.PY_THROW, thrown)
    monitoring.register_callback(tool, events.PY_UNWIND, unwound)
    monitoring.set_events(tool, events.PY_START | events.PY_THROW | events.PY_UNWIND)
    return True
