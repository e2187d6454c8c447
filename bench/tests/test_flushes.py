"""The command `flushes`: what it does before each flush of a message, and its table."""

from __future__ import annotations

from pathlib import Path

from backstory_bench import flushes


def test_each_message_is_delivered_once_for_each_kind_and_logged_where_it_says(tmp_path: Path) -> None:
    rows = flushes.measure(tmp_path, 3, flushes.KINDS)
    assert len(rows) == 3 * len(flushes.KINDS)
    assert not list((tmp_path / "tmp").iterdir())
    delivered = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert set(delivered) == {f"{number}.{kind}" for number in range(3) for kind in flushes.KINDS}
    assert set(delivered.values()) == {flushes.MESSAGE}
    logs = {kind: (tmp_path / f"log-{kind}").read_bytes() for kind in flushes.KINDS}
    assert logs["append"] == logs["within"] == logs["range"] == 3 * flushes.RECORD
    assert (logs["nothing"], logs["unchanged"]) == (b"", flushes.RECORD)


def test_the_table_has_the_medians_of_each_kind() -> None:
    def row(before: str, whole: float, part: float) -> dict[str, object]:
        return dict(zip(flushes.FIELDS, [before, 0, whole, part], strict=True))

    rows = [row("append", 500, 200), row("append", 900, 600), row("append", 510, 220), row("nothing", 305, 0)]
    assert flushes.summary(rows)[2:] == ["| nothing | 305 | 0 |", "| append | 510 | 220 |"]
