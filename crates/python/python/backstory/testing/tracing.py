"""Collects the functions that run, at the least cost that this version of Python allows."""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any, Protocol


class Tracer(Protocol):
    """Collects the code objects that run."""

    complete: bool
    """False if another tool may have prevented this tracer from seeing all functions."""

    def start(self) -> None:
        """Starts tracing."""

    def taken(self) -> set[CodeType]:
        """Returns the code objects that ran since the last call."""

    def stop(self) -> None:
        """Stops tracing."""


def tracer() -> Tracer:
    """Returns the tracer for this version of Python."""
    return MonitoringTracer() if sys.version_info >= (3, 12) else CallTracer()


class CallTracer:
    """For Python 3.10 and 3.11: a trace function that is called for calls, but not for lines."""

    def __init__(self) -> None:
        self.complete = sys.gettrace() is None
        self._seen: set[CodeType] = set()

    def start(self) -> None:
        if self.complete:
            threading.settrace(self._call)
            sys.settrace(self._call)

    def _call(self, frame: FrameType, event: str, _: Any) -> None:
        self._seen.add(frame.f_code)

    def taken(self) -> set[CodeType]:
        if self.complete and sys.gettrace() != self._call:
            # A test or a tool has replaced the trace function and has not restored it.
            self.complete = False
        seen, self._seen = self._seen, set()
        return seen

    def stop(self) -> None:
        if sys.gettrace() == self._call:
            sys.settrace(None)
            threading.settrace(None)


class MonitoringTracer:
    """For Python 3.12 and later: one event for each function until the next call of ``taken``."""

    def __init__(self) -> None:
        self.complete = True
        self._seen: set[CodeType] = set()
        self._tool = -1

    def start(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        for tool in (4, 3):
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "backstory")
                self._tool = tool
                break
        else:
            self.complete = False
            return
        events = monitoring.events
        for event in (events.PY_START, events.PY_RESUME):
            monitoring.register_callback(self._tool, event, self._called)
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME)

    def _called(self, code: CodeType, _: int) -> Any:
        self._seen.add(code)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def taken(self) -> set[CodeType]:
        seen, self._seen = self._seen, set()
        if self._tool >= 0:
            sys.monitoring.restart_events()  # type: ignore[attr-defined,unused-ignore]
        return seen

    def stop(self) -> None:
        if self._tool >= 0:
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
            monitoring.set_events(self._tool, 0)
            monitoring.free_tool_id(self._tool)
            self._tool = -1
