"""A store whose runs wait: no indexer gets its lock."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from backstory_bench.pending_runs import LOCK, environment, held, recorded


def test_no_indexer_gets_the_lock_until_the_measurement_releases_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with held(store), (store / LOCK).open("w") as indexer, pytest.raises(BlockingIOError):
        fcntl.flock(indexer, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (store / LOCK).open("w") as indexer:
        fcntl.flock(indexer, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_store_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    with held(tmp_path / "store"):
        pass
    assert (tmp_path / "store").stat().st_mode & 0o077 == 0


def test_a_command_is_recorded_into_the_store_without_settings_of_another_recording(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKSTORY_STORE", "/other")
    assert "BACKSTORY_STORE" not in environment()
    words = recorded(["true"], Path("/s"), "backstory", "lazy")
    assert words == ["backstory", "record", "--store", "/s", "--contents", "lazy", "--", "true"]
