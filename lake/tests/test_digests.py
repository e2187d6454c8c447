"""A question compares a data file once, whatever happens to the list of compared files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from backstory_lake import digests
from backstory_lake.errors import LakeError


def data_files(directory: Path, count: int) -> list[Path]:
    """Data files with their digests in their names."""
    directory.mkdir()
    made = []
    for at in range(count):
        content = b"%d" % at
        made.append(directory / f"{at}-{hashlib.sha256(content).hexdigest()}.parquet")
        made[-1].write_bytes(content)
    return made


def compared(files: list[Path], monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> list[Path]:
    """The files that a question compares."""
    found: list[Path] = []
    is_as_written = digests._is_as_written

    def noted(path: str) -> bool:
        found.append(Path(path))
        return is_as_written(path)

    with monkeypatch.context() as patch:
        patch.setattr(digests, "_is_as_written", noted)
        if fails:
            with pytest.raises(LakeError, match="was changed since it was written"):
                digests.check_once("table", map(str, files))
        else:
            digests.check_once("table", map(str, files))
    return sorted(found)


def test_a_question_needs_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = data_files(tmp_path / "data", 2)
    (tmp_path / "cache").write_text("no directory")
    assert compared(files, monkeypatch) == files
    assert compared(files, monkeypatch) == files

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert compared(files, monkeypatch) == files


@pytest.mark.parametrize("content", ["[]", "null", "{", ""])
def test_a_wrong_cache_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    files = data_files(tmp_path / "data", 2)
    assert compared(files, monkeypatch) == files
    assert compared(files, monkeypatch) == []
    (cache,) = (tmp_path / "cache" / "backstory-lake").iterdir()
    cache.write_text(content)
    assert compared(files, monkeypatch) == files
    assert compared(files, monkeypatch) == []


def test_what_was_compared_before_a_damaged_file_is_not_compared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = data_files(tmp_path / "data", 5)
    content = files[2].read_bytes()
    files[2].write_bytes(b"other")
    compared(files, monkeypatch, fails=True)
    files[2].write_bytes(content)
    assert compared(files, monkeypatch) == files[2:]


def test_an_interrupted_question_leaves_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = data_files(tmp_path / "data", 3)
    written: list[int] = []
    monkeypatch.setattr(digests, "KEEP", -1)
    monkeypatch.setattr(digests, "_write", lambda _, states: written.append(len(states)))
    assert compared(files, monkeypatch) == files
    assert written == [1, 2, 3, 3]


def test_a_message_says_once_that_much_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = data_files(tmp_path / "data", 3)
    compared(files[:1], monkeypatch)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(digests, "MANY", 2)
    compared(files, monkeypatch)
    assert "comparing 2 data files of table with their digests" in capsys.readouterr().err
    compared(files, monkeypatch)
    assert capsys.readouterr().err == ""
