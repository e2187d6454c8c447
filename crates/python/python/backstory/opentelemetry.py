"""Makes each span of OpenTelemetry an activity of the recorded run.

>>> from opentelemetry import trace
>>> from opentelemetry.sdk.trace import TracerProvider
>>> from backstory.opentelemetry import BackstorySpanProcessor
>>> provider = TracerProvider()
>>> provider.add_span_processor(BackstorySpanProcessor())
>>> trace.set_tracer_provider(provider)

A span's attributes become attributes of the activity, its events extended records of type
``opentelemetry.event``. Spans may overlap. Needs the package ``opentelemetry-sdk``.
"""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import get_current_span

from . import _marks

__all__ = ["BackstorySpanProcessor"]


def _handle(context: Any) -> str:
    return f"otel-{context.span_id:016x}"


class BackstorySpanProcessor(SpanProcessor):
    """Tells the recorder where spans begin and end."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Begins the activity, inside that of the span around it."""
        parent = get_current_span(parent_context).get_span_context()
        around = [_handle(parent)] if parent.is_valid and not parent.is_remote else []
        _marks._say(b"begin", [span.name], [*around, _handle(span.get_span_context())])

    def on_end(self, span: ReadableSpan) -> None:
        """Adds attributes and events, and ends the activity."""
        handles = [_handle(span.get_span_context())]
        for key, value in (span.attributes or {}).items():
            _marks._say(b"note", [key, str(value)], handles)
        for event in span.events:
            said = {"name": event.name, "attributes": dict(event.attributes or {})}
            words = ["opentelemetry.event", json.dumps(said, default=str)]
            _marks._say(b"record", words, handles)
        if span.status.description:
            _marks._say(b"note", ["status", span.status.description], handles)
        _marks._say(b"end", [], handles)
