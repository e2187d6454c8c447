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
    disclosure.change("bank:accounts", part="row=42")
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
    row = paths(workspace, "bank:accounts#row=42")
    assert any(path.endswith("/train.csv") for path in row), row
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


MLFLOW = """
import mlflow
import backstory.mlflow

backstory.mlflow.enable()
mlflow.set_tracking_uri("sqlite:///tracking.db")
with mlflow.start_run(run_name="bold-cat"):
    mlflow.log_param("rate", 0.1)
    for step, loss in enumerate([0.5, 0.25]):
        mlflow.log_metric("loss", loss, step=step)
    data = open("train.csv").read()
    open("model.bin", "w").write(data)
    mlflow.log_artifact("model.bin")
    run = mlflow.active_run().info.run_id
client = mlflow.MlflowClient()
client.create_registered_model("churn")
client.create_model_version("churn", f"runs:/{run}/model.bin", run_id=run)
model = mlflow.artifacts.download_artifacts(f"runs:/{run}/model.bin")
open("again.bin", "w").write(open(model).read())
"""

LIVE = """
from backstory.dvclive import Live

with Live(save_dvc_exp=False, dvcyaml=None, exp_name="bold-cat") as live:
    live.log_params({"rate": 0.1})
    for loss in [0.5, 0.25]:
        live.log_metric("loss", loss)
        live.next_step()
    data = open("train.csv").read()
    open("model.bin", "w").write(data)
    live.log_artifact("model.bin", type="model", name="churn")
"""


def part(what: str) -> dict[str, Any]:
    """Returns the activity of the newest run that a program named so."""
    rows = bs.Store().run().processes().to_dicts()
    return next(dict(row) for row in rows if row["argv"][0] == what)


@pytest.mark.long
def test_a_run_of_mlflow_is_an_activity_and_a_model_comes_from_its_data(workspace: Any) -> None:
    pytest.importorskip("mlflow")
    Path("train.csv").write_text("1")
    Path("program.py").write_text(MLFLOW)
    bs.run([sys.executable, "program.py"])
    said = part("mlflow")
    assert said["argv"][2] == "bold-cat"
    assert any(path.endswith("/train.csv") for path in paths(workspace, "models:/churn/1"))
    assert f"runs:/{said['argv'][1]}/model.bin" in paths(workspace, "again.bin")
    shown = workspace.json_of("processes")
    attributes = next(one for one in shown if one["argv"][0] == "mlflow")["attributes"]
    assert attributes["rate"] == "0.1" and attributes["loss"] == "0.25", attributes


@pytest.mark.long
def test_an_experiment_of_dvclive_is_an_activity(workspace: Any) -> None:
    pytest.importorskip("dvclive")
    Path("train.csv").write_text("1")
    Path("program.py").write_text(LIVE)
    bs.run([sys.executable, "program.py"])
    assert any(path.endswith("/train.csv") for path in paths(workspace, "dvc:churn"))
    shown = workspace.json_of("processes")
    live = next(one for one in shown if one["argv"][0] == "dvclive")
    assert live["attributes"] == {"rate": "0.1", "loss": "0.25"}, live
    assert len(live["records"]) == 2, live
