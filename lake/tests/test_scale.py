"""The measurements, the model that is fitted to them, and the page about both."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backstory_fleet import cli, measure, page
from backstory_fleet.asking import measure_all
from backstory_fleet.measure import Measurement
from backstory_fleet.model import models

#: The cores' seconds of an invented engine: for a question, an edge and a link.
FACTORS = (0.5, 2e-6, 1e-5)
JAR = os.environ.get("BACKSTORY_ICEBERG_JAR", "")
SIZES = (100_000, 300_000, 1_000_000, 3_000_000)


def invented(noise: float) -> list[Measurement]:
    """Questions to DuckDB whose costs follow a known model."""
    rows = []
    for at, edges in enumerate(SIZES):
        for files, links in ((1, 500), (100, 20_000), (10_000, 200_000)):
            cpu = sum(factor * term for factor, term in zip(FACTORS, (1, edges, links)))
            cpu *= 1 + noise * (-1) ** (at // 2)
            rows.append(
                Measurement("duckdb", f"of {files}", edges, 10, files=files, cpu=cpu, links=links)
            )
    return rows


def test_the_model_finds_known_factors_and_the_error_of_others() -> None:
    (exact,) = models(invented(noise=0))
    assert tuple(exact.factors.values()) == pytest.approx(FACTORS, rel=0.01)
    assert exact.worst < 0.01 and (exact.fitted, exact.checked) == (6, 6)
    (rough,) = models(invented(noise=0.3))
    assert rough.worst > 0.1 and rough.beyond is not None and rough.beyond > 0.1


def test_a_cost_of_another_form_is_seen_in_the_error() -> None:
    rows = invented(noise=0)
    for row in rows:
        row.cpu = (row.edges / 1e5) ** 2
    (wrong,) = models(rows)
    assert max(wrong.worst, wrong.beyond or 0) > 0.5


@pytest.mark.long
@pytest.mark.skipif(not JAR, reason="BACKSTORY_ICEBERG_JAR names no library")
def test_a_cluster_of_spark_is_measured_with_its_shuffles(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.csv"
    measure_all(out, [2e4], [("spark", None)], 1, str(recorded))
    asked = {one.question: one for one in measure.read(out) if one.engine == "spark"}
    assert asked["open"].bytes > 0 and asked["first question"].shuffled > 0
    assert asked["of 100 files"].links > 500 and asked["of 100 files"].cpu > 0


@pytest.mark.long
def test_measurements_make_a_page(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs.csv"
    measure_all(out, [2e4], [("duckdb", None)], 1, str(recorded))
    found = measure.read(out)
    asked = {one.question: one for one in found if one.engine == "duckdb"}
    assert asked["of 100 files"].links > 500 and asked["uses of a layer's file"].links > 500
    assert asked["bytes written by each owner"].links > 0
    measure.append(out, invented(noise=0))
    assert cli.main(["page", str(out)]) == 0
    text = capsys.readouterr().out
    (busy,) = [one for one in found if one.question == "others"]
    assert 0 <= busy.cpu and "other programs used at most" in text
    assert text == page.text(measure.read(out))
    measure.append(out, [Measurement("machine", "others", 1, workers=2, cpu=999)])
    words = page.text(measure.read(out)).split()
    assert "at most 999 of" in " ".join(words) and "provisional." in words
    for words in ("| DuckDB: lineage |", "not measured", "31 bits", "would refute"):
        assert words in text, words
