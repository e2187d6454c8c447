"""Statements of a Python program about its own work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import backstory as bs
import pytest

SCRIPT = """
import logging
from backstory import disclosure

with disclosure.activity("train", "epoch 3"):
    open("train.csv").read()
    disclosure.read("s3://bucket/é %")
    disclosure.write("model:3")
    disclosure.note(loss=0.12)
with disclosure.Span("GET", "/a") as outer, disclosure.Span("db", parent=outer) as inner:
    inner.read("table:a")
    outer.write("reply:1")
log = logging.getLogger("app")
log.addHandler(disclosure.LogHandler())
log.warning("slow: %d s", 3)
"""

SPANS = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from backstory.opentelemetry import BackstorySpanProcessor
from backstory import disclosure

provider = TracerProvider()
provider.add_span_processor(BackstorySpanProcessor())
tracer = provider.get_tracer("test")
with tracer.start_as_current_span("request", attributes={"route": "/a"}):
    with tracer.start_as_current_span("query") as span:
        span.add_event("row", {"id": 42})
"""


def commands(place: Any) -> list[list[str]]:
    """Returns the arguments of all processes and activities of the newest run."""
    rows = bs.Store().run().processes().to_dicts()
    return [list(row["argv"]) for row in rows]


def paths(place: Any, thing: str) -> list[str]:
    """Returns the paths and names in the origin of a thing."""
    return [node["path"] for node in place.json_of("of", thing)["nodes"] if "path" in node]


def test_a_thing_comes_from_the_files_of_its_activity(workspace: Any) -> None:
    Path("train.csv").write_text("1")
    Path("program.py").write_text(SCRIPT)
    bs.run([sys.executable, "program.py"])
    origin = paths(workspace, "model:3")
    assert any(path.endswith("/train.csv") for path in origin), origin
    assert "s3://bucket/é %" in origin
    assert "table:a" in paths(workspace, "reply:1")
    assert ["train", "epoch 3"] in commands(workspace)


def test_statements_do_nothing_outside_of_a_recording(workspace: Any) -> None:
    ended = workspace.python("-c", SCRIPT.replace('open("train.csv").read()', "pass"))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


def test_a_span_of_opentelemetry_is_an_activity(workspace: Any) -> None:
    pytest.importorskip("opentelemetry.sdk")
    Path("program.py").write_text(SPANS)
    bs.run([sys.executable, "program.py"])
    said = commands(workspace)
    assert ["request"] in said and ["query"] in said, said
