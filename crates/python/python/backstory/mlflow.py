"""Makes each run of MLflow an activity of the recorded run.

>>> import backstory.mlflow
>>> backstory.mlflow.enable()

Parameters, tags and the last value of each metric become attributes of the activity. Each value of
a metric becomes an extended record of type ``mlflow.metric``. An artifact is a thing with MLflow's
own name, ``runs:/RUN/PATH``, a logged model ``models:/ID``, and a version of a registered model
``models:/NAME/VERSION``. A data set is the thing that MLflow calls its source.

``backstory of models:/churn/3`` then answers what the model came from, whatever program trained it.
Needs the package ``mlflow`` or ``mlflow-skinny``, version 2 or later.
"""

from __future__ import annotations

import functools
import json
import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.store.artifact.models_artifact_repo import ModelsArtifactRepository
from mlflow.store.artifact.runs_artifact_repo import RunsArtifactRepository

from . import _marks
from .disclosure import Span

__all__ = ["enable"]

#: A function that is called after another, with that one's result and arguments by name.
_Sequel = Callable[[Any, dict[str, Any]], None]

#: The activities of the MLflow runs that this process began.
_SPANS: dict[str, Span] = {}

_enabled = False


def enable() -> None:
    """Makes MLflow tell the recorder what it does, in this process. A second call does nothing.

    MLflow's functions do and return what they did before.
    """
    global _enabled
    if _enabled or not _marks.is_recorded():
        return
    _enabled = True
    for name, sequel in _SEQUELS.items():
        _follow(MlflowClient, name, sequel)
    for repository in (ModelsArtifactRepository, RunsArtifactRepository):
        _follow(repository, "download_artifacts", _downloaded)


def _follow(owner: type, name: str, sequel: _Sequel) -> None:
    """Replaces a method by one that also calls ``sequel``. A version without it stays as it is."""
    original = getattr(owner, name, None)
    if original is None:
        return
    names = original.__code__.co_varnames[: original.__code__.co_argcount]

    @functools.wraps(original)
    def followed(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        try:
            sequel(result, {**dict(zip(names, args)), **kwargs})
        except Exception:  # The program must not notice that it is observed.
            pass
        return result

    setattr(owner, name, followed)


def _span(run: str) -> Span:
    """The activity of an MLflow run. One that another process began is begun here, too."""
    if run not in _SPANS:
        _SPANS[run] = Span("mlflow", run, handle=f"mlflow-{run}")
    return _SPANS[run]


def _begun(run: Any, _said: dict[str, Any]) -> None:
    info = run.info
    words = [info.run_name] if info.run_name else []
    _SPANS[info.run_id] = Span("mlflow", info.run_id, *words, handle=f"mlflow-{info.run_id}")


def _ended(_result: Any, said: dict[str, Any]) -> None:
    span = _SPANS.pop(said["run_id"], None)
    if span:
        span.note(status=said.get("status") or "FINISHED")
        span.end()


def _metric(run: str, key: str, value: float, step: int | None) -> None:
    _span(run).record("mlflow.metric", {"key": key, "value": value, "step": step or 0})
    _span(run).note(**{key: value})


def _metric_logged(_result: Any, said: dict[str, Any]) -> None:
    _metric(said["run_id"], said["key"], said["value"], said.get("step"))


def _noted(_result: Any, said: dict[str, Any]) -> None:
    _span(said["run_id"]).note(**{said["key"]: said["value"]})


def _batch_logged(_result: Any, said: dict[str, Any]) -> None:
    run = said["run_id"]
    for metric in said.get("metrics") or ():
        _metric(run, metric.key, metric.value, metric.step)
    for pair in (*(said.get("params") or ()), *(said.get("tags") or ())):
        _span(run).note(**{pair.key: pair.value})


def _artifact_logged(_result: Any, said: dict[str, Any]) -> None:
    name = posixpath.join(said.get("artifact_path") or "", Path(said["local_path"]).name)
    _span(said["run_id"]).write(_of_run(said["run_id"], name))


def _artifacts_logged(_result: Any, said: dict[str, Any]) -> None:
    for name in _below(said):
        _span(said["run_id"]).write(_of_run(said["run_id"], name))


def _model_artifacts_logged(_result: Any, said: dict[str, Any]) -> None:
    _speaker().write(f"models:/{said['model_id']}")


def _below(said: dict[str, Any]) -> Iterator[str]:
    """The artifact paths of the files in a logged directory."""
    top = Path(said["local_dir"])
    for path in sorted(top.rglob("*")):
        if path.is_file():
            below = path.relative_to(top).as_posix()
            yield posixpath.join(said.get("artifact_path") or "", below)


def _inputs_logged(_result: Any, said: dict[str, Any]) -> None:
    for given in said.get("datasets") or ():
        source = json.loads(given.dataset.source)
        name = next((text for text in source.values() if isinstance(text, str)), "")
        if ":" in name:
            _span(said["run_id"]).read(name)
    for model in said.get("models") or ():
        _span(said["run_id"]).read(f"models:/{model.model_id}")


def _version_made(version: Any, said: dict[str, Any]) -> None:
    name = f"models:/{version.name}/{version.version}"
    run, source = said.get("run_id"), str(said.get("source") or "")
    speaker = _span(run) if run in _SPANS else _speaker()
    speaker.write(name)
    model = said.get("model_id")
    if model:
        speaker.derive(name, f"models:/{model}")
    elif source.startswith(("runs:/", "models:/")):
        speaker.derive(name, source)


def _downloaded(_result: Any, said: dict[str, Any]) -> None:
    name = posixpath.join(said["self"].artifact_uri, said["artifact_path"] or "")
    _speaker().read(name.rstrip("/"))


def _of_run(run: str, path: str) -> str:
    return f"runs:/{run}/{path}"


def _speaker() -> Any:
    """Speaks for the latest MLflow run of this process, or for the process."""
    from . import disclosure

    return next(reversed(_SPANS.values()), disclosure)


_SEQUELS: dict[str, _Sequel] = {
    "create_run": _begun,
    "set_terminated": _ended,
    "log_metric": _metric_logged,
    "log_param": _noted,
    "set_tag": _noted,
    "log_batch": _batch_logged,
    "log_artifact": _artifact_logged,
    "log_artifacts": _artifacts_logged,
    "log_model_artifacts": _model_artifacts_logged,
    "log_inputs": _inputs_logged,
    "create_model_version": _version_made,
}
