"""Makes each experiment of DVCLive an activity of the recorded run.

>>> from backstory.dvclive import Live
>>> with Live() as live:
...     live.log_param("rate", 0.1)
...     live.log_metric("loss", 0.12)
...     live.log_artifact("model.pt", type="model", name="churn")

``Live`` takes the place of ``dvclive.Live``. Parameters and the last value of each metric become
attributes of the activity. Each value of a metric becomes an extended record of type
``dvclive.metric``. An artifact with a name is the thing ``dvc:NAME``.

DVC's own commands need no adapter: stages, data and cache are programs and files. Needs the package
``dvclive``, version 3.
"""

from __future__ import annotations

from typing import Any

import dvclive

from .disclosure import Span

__all__ = ["Live"]


class Live(dvclive.Live):  # type: ignore[misc]
    """A ``dvclive.Live`` that tells the recorder what it logs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._span: Span | None = Span("dvclive", str(kwargs.get("exp_name") or self.dir))

    def log_metric(self, name: str, val: Any, *args: Any, **kwargs: Any) -> None:
        """Logs a metric."""
        super().log_metric(name, val, *args, **kwargs)
        if self._span:
            self._span.record("dvclive.metric", {"name": name, "value": val, "step": self.step})
            self._span.note(**{name: val})

    def log_param(self, name: str, val: Any) -> None:
        """Logs a parameter."""
        super().log_param(name, val)
        if self._span:
            self._span.note(**{name: val})

    def log_params(self, params: dict[str, Any]) -> None:
        """Logs parameters."""
        super().log_params(params)
        if self._span:
            self._span.note(**params)

    def log_artifact(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Logs an artifact."""
        super().log_artifact(path, *args, **kwargs)
        name = kwargs.get("name") or (args[1] if len(args) > 1 else None)
        if self._span and name:
            self._span.write(f"dvc:{name}")

    def end(self) -> None:
        """Ends the experiment."""
        super().end()
        if self._span:
            self._span.end()
            self._span = None
