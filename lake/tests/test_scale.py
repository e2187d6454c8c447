"""The measurements, the model that is fitted to them, and the page about both."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE, answer

from backstory_fleet import asking, cli, corpus, measure, page
from backstory_fleet.asking import measure_all
from backstory_fleet.measure import Measurement
from backstory_fleet.model import FLEET, OWNERS, models
from backstory_lake.errors import LakeError

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


def test_each_question_about_a_fleet_has_a_model_with_bounds_on_both_sides() -> None:
    costs = {name: 3.0**at for at, name in enumerate(FLEET)}
    rows = [row for edges in SIZES for row in of_lake(edges)]
    rows += [
        Measurement("duckdb", name, edges, cpu=cost * (1 + edges / 1e6))
        for edges in SIZES
        for name, cost in costs.items()
    ]
    found = {one.kind.name: one for one in models(rows)}
    assert [found[f"DuckDB: {name}"].factors["question"] for name in FLEET] == pytest.approx(
        list(costs.values()), rel=0.01
    )
    assert all(found[f"DuckDB: {name}"].worst < 0.01 for name in FLEET)
    assert f"| DuckDB: {OWNERS} | 1.00 | 1.00 |" in page.text(rows, "runs.csv")


def test_an_interrupted_measurement_goes_on_where_it_was(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, here = tmp_path / "runs.csv", tmp_path / "measured"
    made: list[Any] = []
    whole, generate = measure.duckdb, asking.generate

    def cut_off(*given: Any) -> Iterator[Measurement]:
        rows = whole(*given)
        yield from (next(rows) for _ in range(3))
        raise KeyboardInterrupt

    def counted(*given: Any) -> Any:
        made.append(given)
        return generate(*given)

    def in_this_process(lake: Path, out: Path, engine: str, workers: int) -> None:
        asking.ask(asking.Lake.open(str(lake)), out, engine, workers)

    (here / "corpus").mkdir(parents=True)
    (here / "corpus/own").touch()
    monkeypatch.setattr(asking, "generate", counted)
    monkeypatch.setattr(asking, "_in_a_process", in_this_process)
    monkeypatch.setattr(measure, "duckdb", cut_off)
    given = (out, [2e4], [("duckdb", None)], 1, str(recorded), here)
    with pytest.raises(KeyboardInterrupt):
        measure_all(*given)
    kept = [one for one in measure.read(out) if one.engine == "duckdb"]
    assert [one.question for one in kept[:2]] == ["open", "of 1 file"] and len(kept) == 3
    monkeypatch.setattr(measure, "duckdb", whole)
    measure_all(*given)
    found = [one for one in measure.read(out) if one.engine != "machine"]
    assert [one for one in found if one.engine == "duckdb"][:3] == kept
    assert set(Counter((one.engine, one.question) for one in found).values()) == {1}
    assert found[-1].question == "bytes written by each owner"
    assert len(made) == 1
    assert sorted(here.rglob("*")) == [here / "corpus", here / "corpus/own"]


def test_a_corpus_is_shipped_by_processes_whose_cost_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tuple(corpus.Command("data", f"cp table1.csv copy{at}") for at in range(2))
    monkeypatch.setattr(corpus, "QUICK", lines[:1])
    monkeypatch.setattr(corpus, "REST", lines[1:])
    out = tmp_path / "runs.csv"
    measure_all(out, [], [], 1)
    found = measure.read(out)
    assert [(one.question, one.runs) for one in found] == [("ship", 2), ("ship again", 2)]
    for one in found:
        # The start of Python alone takes more.
        assert one.edges > 0 and one.cpu > 0.1 and one.seconds > 0.1


def test_what_shipping_a_corpus_costs_is_on_the_page(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "runs.csv"
    shipped = corpus.Recorded(6, corpus.Cost(4.0, 6.0), corpus.Cost(1.5, 1.25))
    monkeypatch.setattr(corpus, "record", lambda *_: shipped)
    assert cli.main(["corpus", "--to", str(recorded), "--out", str(out)]) == 0
    edges, runs = (answer(recorded, f"SELECT count(*) FROM {of}")[0][0] for of in ("edges", "runs"))
    cells = [str(runs), page.number(edges), "4", "6", page.number(edges / 4), "1.5"]
    text = page.text([*of_lake(10**6), *measure.read(out)], "runs.csv")
    assert f"| {' | '.join(cells)} |" in text
    assert "were not measured here" not in text
    assert "were not measured here" in page.text(of_lake(10**6), "runs.csv")


def test_a_directory_of_others_is_neither_used_nor_removed(recorded: Path, tmp_path: Path) -> None:
    own = tmp_path / asking.OWN / "own"
    own.parent.mkdir()
    own.touch()
    with pytest.raises(LakeError, match=f"{own.parent} is not of an earlier measurement"):
        measure_all(tmp_path / "runs.csv", [], [], 1, str(recorded), tmp_path)
    assert own.exists()


def test_answers_with_other_workers_are_not_those_of_the_question(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    from backstory_fleet import measure_spark

    out, lake = tmp_path / "runs.csv", asking.Lake.open(str(recorded))
    edges = measure.sizes(lake)[0].edges

    def spark(_: Any, asked: list[measure.Asked], workers: int) -> Iterator[Measurement]:
        for name in ("open", *(one.name for one in asked)):
            yield Measurement("spark", name, edges, workers=workers)

    monkeypatch.setattr(measure_spark, "spark", spark)
    monkeypatch.setattr(measure, "questions", lambda _: [measure.Asked("of 1 file", (1,))])
    for workers in (1, 2, 2):
        asking.ask(lake, out, "spark", workers)
    found = [(one.question, one.workers) for one in measure.read(out) if one.engine == "spark"]
    assert found == [("open", 1), ("of 1 file", 1), ("open", 2), ("of 1 file", 2)]


def test_only_the_named_questions_are_asked(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, lake = tmp_path / "runs.csv", asking.Lake.open(str(recorded))
    asked = [measure.Asked(name, sql="SELECT 1") for name in ("first", "second")]
    monkeypatch.setattr(measure, "questions", lambda _: asked)
    with pytest.raises(LakeError, match="named 'third'; there are: first; second"):
        asking.ask(lake, out, "duckdb", 1, ["third"])
    asking.ask(lake, out, "duckdb", 1, ["second"])
    found = [one.question for one in measure.read(out) if one.engine == "duckdb"]
    assert found == ["open", "second"]


def of_lake(edges: int) -> list[Measurement]:
    """The rows about a lake that was asked nothing."""
    return [
        Measurement("lake", "all tables", edges, 10, files=1, bytes=16 * edges),
        Measurement("lake", "the table edges", edges, 10, files=1, bytes=8 * edges),
        Measurement("lake", "make", edges, 10, bytes=1, rounds=1),
        Measurement("lake", "write", edges, 10, seconds=1),
    ]


def test_the_page_names_options_questions_not_asked_and_lakes_that_differ() -> None:
    answers = (
        ("duckdb", 980_000, {"open": 0, "of 1 file": 7}),
        ("spark", 980_000, {"open": 0, "of 1 file": 7}),
        ("duckdb", 9_800_000, {"open": 0, "of 1 file": 89}),
        ("spark", 9_900_000, {"of 1 file": 15_000}),
    )
    rows = [row for edges in sorted({edges for _, edges, _ in answers}) for row in of_lake(edges)]
    for engine, edges, questions in answers:
        rows += [Measurement(engine, name, edges, links=n) for name, n in questions.items()]
    text = page.text(rows, "runs.csv")
    assert "$ scripts/scale FILE --sizes 1e6\n" in text
    assert "$ scripts/scale FILE --sizes 1e7 --engines duckdb\n" in text
    assert "$ scripts/scale FILE --sizes 1e7 --engines spark --most 1e7\n" in text
    words = " ".join(text.split())
    assert words.count("has no row of") == 1
    assert "The lake of 9.9 × 10^6 edges has no row of Spark for these: open." in words
    alone = "Only DuckDB was asked about the lake of 9.8 × 10^6 edges, and only Spark about"
    assert f"{alone} the lake of 9.9 × 10^6." in words
    assert "`of 1 file` has 89 rows in the first and 15,000 in the second." in words


def test_the_page_in_the_documents_is_that_of_its_measurements() -> None:
    top = PACKAGE.parent
    text = (top / "docs" / "scale.md").read_text()
    found = re.search(r"`(bench/runs/[^`]*)`", text)
    assert found is not None
    assert page.text(measure.read(top / found[1]), found[1]) == text


def test_small_lakes_come_first_on_the_page() -> None:
    rows: list[Measurement] = []
    for edges in (2_000_000, 1_000_000):
        rows += [*of_lake(edges), Measurement("duckdb", "open", edges, 10, cpu=1)]
    text = page.text(rows, "runs.csv")
    places = [
        text.index(begin)
        for size in ("1", "2")
        for begin in (f"| {size} × 10^6 | 10 |", f"| DuckDB | {size} × 10^6 |")
    ]
    assert places[0] < places[2] and places[1] < places[3]
    assert "several days" not in text


def test_a_lake_is_opened_by_one_core_of_a_larger_machine() -> None:
    rows = [row for edges in SIZES for row in of_lake(edges)]
    rows += [
        Measurement("duckdb", "open", edges, files=edges // 1000, cpu=0.5 + edges / 1e7)
        for edges in SIZES
    ]
    # 1e10 edges have 1,250 files of 128 MB, and each costs 0.1 ms.
    text = page.text(rows, "a.csv")
    assert "| 1 × 10^10 | 1,250 | 0.625 | not measured | not measured |" in text
    # 1e8 edges have 13 such files, but there is one for each bucket of a day.
    assert "| 1 × 10^8 | 16 | 0.502 | not measured | not measured |" in text


def test_spark_s_log_is_read_while_it_grows(tmp_path: Path) -> None:
    def task(stage: int, size: int) -> str:
        read = {"Remote Bytes Read": size, "Local Bytes Read": 0}
        metrics = {"Shuffle Read Metrics": read, "Executor CPU Time": 1_000_000_000}
        end = {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}
        return json.dumps(end) + "\n"

    def job(name: str, stage: int) -> str:
        properties = {"spark.jobGroup.id": name}
        start = {"Event": "SparkListenerJobStart", "Stage IDs": [stage], "Properties": properties}
        return json.dumps(start) + "\n"

    pytest.importorskip("pyspark")
    from backstory_fleet.measure_spark import EventLog

    log = EventLog(tmp_path)
    with (tmp_path / "app.inprogress").open("w") as file:
        late = task(1, 100)
        for text in (job("a", 1), task(1, 300), late[:20]):
            file.write(text)
        file.flush()
        assert log.read() == {"a": (300, 1.0, 1.0)}
        file.write(late[20:] + job("b", 2))
        file.flush()
        assert log.read() == {"a": (400, 1.5, 2.0), "b": (0, 0.0, 0.0)}


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
    assert 0 <= busy.cpu and "other programs used" in text
    assert text == page.text(measure.read(out), out.name)
    measure.append(out, [Measurement("machine", "others", 1, workers=2, cpu=999)])
    words = " ".join(page.text(measure.read(out), out.name).split())
    busiest = "Before the lake of 1 edges was asked, other programs used up to 999 of 2 cores."
    assert busiest in words
    assert words.count("wall times are provisional") == 1 + (busy.cpu > page.QUIET)
    assert "the rows of `runs.csv`" in " ".join(text.split())
    for words in ("| DuckDB: lineage |", "not measured", "31 bits", "would refute"):
        assert words in text, words
