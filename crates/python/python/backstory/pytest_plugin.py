"""The pytest plug-in: ``--backstory`` and ``--backstory-select``.

pytest starts a second pytest under the recorder. Each test is an activity of the run. Afterwards
the plug-in stores the inputs of each test; ``backstory.testing`` lists their kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: The environment variable with the path of the recorded pytest's notes.
_NOTES = "BACKSTORY_PYTEST_NOTES"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("backstory", "recording the inputs of tests")
    group.addoption(
        "--backstory",
        action="store_true",
        help="record the session, and store the inputs of each test",
    )
    group.addoption(
        "--backstory-select",
        action="store_true",
        help="run only tests that are new, that failed, or whose inputs changed (implies "
        "--backstory)",
    )


def _is_wanted(config: pytest.Config) -> bool:
    return bool(config.getoption("backstory") or config.getoption("backstory_select"))


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Records another pytest with the same arguments.

    Hooks of plug-ins run before the hook of pytest that runs the session.
    """
    import os

    if not _is_wanted(config) or _NOTES in os.environ:
        return None
    import pytest

    if config.getoption("numprocesses", None) or config.getoption("dist", "no") != "no":
        raise pytest.UsageError("--backstory records one process: leave out -n of pytest-xdist")
    from .testing import session

    return session.record(config)


def pytest_configure(config: pytest.Config) -> None:
    """Starts the notes of a recorded session."""
    import os

    path = os.environ.get(_NOTES)
    if path is not None and _is_wanted(config):
        from .testing.observer import SessionObserver

        config.pluginmanager.register(SessionObserver(config, path), "backstory-observer")
