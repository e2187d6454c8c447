"""Ratios, subset, model and report reproduce the parameters of synthetic rows."""

import math
import random
import shutil
from pathlib import Path

import pytest

from backstory_bench.analysis.calls import BY_OPERATION, by_category
from backstory_bench.matrix.journal import Journal

WHY = "SKIPPED: needs bench/requirements-report.txt"
pd = pytest.importorskip("pandas", reason=WHY)
pytest.importorskip("sklearn", reason=WHY)
pytest.importorskip("pyarrow", reason=WHY)
pytest.importorskip("matplotlib", reason=WHY)

from backstory_bench.analysis import model, predict, ratios, subset  # noqa: E402
from backstory_bench.analysis.frame import Results, load  # noqa: E402
from backstory_bench.analysis.standing import percent  # noqa: E402
from backstory_bench.reporting import plots, tables, write  # noqa: E402
from backstory_bench.reporting.conclusions import conclusions  # noqa: E402
from backstory_bench.reporting.page import page  # noqa: E402

OPEN_S, EXEC_S, START_S = 20e-6, 3e-3, 0.05
"""The costs of calls under the fictional collector `slow`."""


def _cell(workload: str, collector: str, iteration: int, wall: float, **more: object) -> dict[str, object]:
    row: dict[str, object] = {
        "kind": "cell", "workload": workload, "group": workload.split("/")[0], "collector": collector, "loops": 1, "mark": "ok",
        "why": "", "stderr": "", "status": 0, "wall_s": wall, "cpu_s": wall * 0.9, "settle_s": 0.0, "memory_bytes": 1 << 20,
        "read_bytes": 0, "written_bytes": 0, "log_bytes": 1000, "figure": None, "counted_by": "cgroup", "load": 0.0,
        "iteration": iteration, "attempt": 0, "position": 0,
    }  # fmt: skip
    return row | more


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    directory = tmp_path_factory.mktemp("matrix") / "one"
    journal = Journal(directory)
    plan = {
        "options": {"cut": 20.0},
        "machine": {"kernel": "k"},
        "skipped_collectors": {"rr": "no <counters>"},
        "skipped_workloads": {},
    }
    journal.create(plan)
    rng = random.Random(3)
    for n in range(12):
        name = f"g{n % 4}/w{n}"
        opens, execs = rng.randrange(0, 20000), rng.randrange(0, 300)
        journal.append(
            {"kind": "counts", "workload": name, "group": f"g{n % 4}", "counts": {"openat": opens, "execve": execs}}
        )
        for i in range(3):
            slow = 2 + START_S + OPEN_S * opens + EXEC_S * execs
            journal.append(_cell(name, "none", i, 2 * rng.lognormvariate(0, 0.002)))
            journal.append(_cell(name, "slow", i, slow * rng.lognormvariate(0, 0.002)))
            journal.append(_cell(name, "backstory", i, 2.02 * rng.lognormvariate(0, 0.002)))
            journal.append(_cell(name, "none", i, 2 * rng.lognormvariate(0, 0.002), position=3))
            journal.append(
                {"kind": "block", "workload": name, "iteration": i, "attempt": 0, "disturbed": False, "kept": True}
            )
    journal.append({"kind": "quality", "workload": "g0/w0", "collector": "slow", "files_true": 4, "files_found": 5, "files_recalled": 3,
                    "files_right": 4, "starts_recalled": 2, "starts_true": 2, "starts_found": 2, "starts_right": 2})  # fmt: skip
    return directory, load(directory)


def test_the_interval_of_a_known_ratio_contains_it(results: tuple[Path, Results]) -> None:
    means = ratios.by_workload(results[1].cells)
    held = [m.low <= 1.01 <= m.high for (_, c), m in means.items() if c == "backstory"]
    assert sum(held) >= 10 and len(held) == 12
    assert 1.0 < ratios.total(results[1].cells)["backstory"].value < 1.02


def test_groups_of_separate_matrices_are_in_the_total(tmp_path: Path) -> None:
    for source, group, wall in (("one", "g", 2.0), ("two", "h", 8.0)):
        journal = Journal(tmp_path / source)
        journal.create({"options": {"cut": 20.0}})
        for i in range(3):
            journal.append(_cell(f"{group}/w", "none", i, 1.0))
            journal.append(_cell(f"{group}/w", "c", i, wall))
            journal.append(
                {
                    "kind": "block",
                    "workload": f"{group}/w",
                    "iteration": i,
                    "attempt": 0,
                    "disturbed": False,
                    "kept": True,
                }
            )
    cells = load(tmp_path).cells
    assert ratios.total(cells)["c"].value == pytest.approx(4), "the mean of both groups"
    assert ratios.total(cells)["c"].rounds == 3


def test_a_group_keeps_the_workloads_that_an_unfinished_last_round_lacks(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.create({"options": {"cut": 20.0}})
    rounds = {"g/short": [2.0, 2.0, 2.0, 50.0], "g/long": [8.0, 8.0, 8.0], "h/w": [1.0, 1.0, 1.0]}
    for workload, walls in rounds.items():
        for i, wall in enumerate(walls):
            journal.append(_cell(workload, "none", i, 1.0))
            journal.append(_cell(workload, "c", i, wall))
            journal.append(
                {"kind": "block", "workload": workload, "iteration": i, "attempt": 0, "disturbed": False, "kept": True}
            )
    cells = load(tmp_path).cells
    group = ratios.by_group(cells)["g", "c"]
    assert (group.value, group.rounds) == (pytest.approx(4), 3), "the mean of both workloads, without the last round"
    whole = ratios.total(cells)["c"]
    assert (whole.value, whole.rounds) == (pytest.approx(2), 3)
    assert ratios.by_workload(cells)["g/short", "c"].rounds == 4


def test_a_block_that_was_repeated_counts_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.create({"options": {"cut": 20.0}})
    for attempt, wall in ((0, 9.0), (1, 1.5)):
        journal.append(_cell("g/w", "none", 0, 1.0, attempt=attempt))
        journal.append(_cell("g/w", "c", 0, wall, attempt=attempt))
        journal.append(
            {
                "kind": "block",
                "workload": "g/w",
                "iteration": 0,
                "attempt": attempt,
                "disturbed": attempt == 0,
                "kept": attempt == 1,
            }
        )
    (mean,) = ratios.by_workload(load(tmp_path).cells).values()
    assert mean.value == pytest.approx(1.5)
    assert math.isnan(mean.low), "one iteration gives no interval"


def test_a_deep_log_stands_beside_the_bytes_that_it_describes(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.create({"options": {"cut": 20.0}})
    share = {"record_bytes": 1050, "stored_io_bytes": 1000, "io_bytes": 2000}
    for i in range(2):
        journal.append(_cell("g/w", "none", i, 1.0))
        journal.append(_cell("g/w", "backstory-deep", i, 1.1, **share))
        journal.append(
            {"kind": "block", "workload": "g/w", "iteration": i, "attempt": 0, "disturbed": False, "kept": True}
        )
    found = load(tmp_path)
    assert tables.deep(found).rows == [["g/w", "2000", "1050", "0.525", "4.76 %"]]
    assert "Deep logs" in page(found)


def test_a_cell_at_the_time_limit_is_a_lower_bound_and_a_failed_cell_has_no_ratio(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.create({"options": {"cut": 20.0}})
    for i in range(2):
        journal.append(_cell("g/w", "none", i, 1.0))
        journal.append(_cell("g/w", "backstory", i, 30.0 + i))
        journal.append(_cell("g/w", "hangs", i, 20.0 + 0.01 * i, mark="cut"))
        journal.append(_cell("g/w", "fails", i, 0.1, mark="failed"))
        journal.append(
            {"kind": "block", "workload": "g/w", "iteration": i, "attempt": 0, "disturbed": False, "kept": True}
        )
    found = load(tmp_path)
    means = ratios.by_workload(found.cells)
    assert str(means["g/w", "hangs"]) == "≥ 20.00", "no interval: it would describe the time limit"
    assert ("g/w", "fails") not in means
    named = [line for line in conclusions(found) if "hangs" in line]
    assert named == ["hangs takes ≥ 20.00 times the native time."], "it may be slower than the limit"


def test_the_model_finds_the_cost_of_a_call(results: tuple[Path, Results]) -> None:
    slow = next(m for m in model.models(results[1]) if m.collector == "slow")
    assert slow.cost["file"] == pytest.approx(OPEN_S, rel=0.1)
    assert slow.cost["exec"] == pytest.approx(EXEC_S, rel=0.1)
    assert slow.error < 0.05
    assert slow.ratio({"file": 10000.0, "exec": 100.0}, 2.0) == pytest.approx(1 + 0.2 + 0.3 + 0.025, rel=0.05)


def test_a_measured_start_is_used_and_a_missing_one_is_marked_as_fitted(
    results: tuple[Path, Results], tmp_path: Path
) -> None:
    (fitted,) = (m for m in model.models(results[1]) if m.collector == "slow")
    assert not fitted.start_measured
    shutil.copytree(results[0], tmp_path / "again", ignore=shutil.ignore_patterns("*.parquet"))
    Journal(tmp_path / "again").append({"kind": "start", "collector": "slow", "mark": "ok", "start_s": START_S})
    (measured,) = (m for m in model.models(load(tmp_path / "again")) if m.collector == "slow")
    assert measured.start_measured and measured.start_s == START_S
    assert measured.ratio({}, START_S) == pytest.approx(2), "a command of a few milliseconds is its start"
    assert measured.cost["file"] == pytest.approx(OPEN_S, rel=0.1)


def test_weights_are_not_negative_and_sum_to_one_and_all_rows_have_no_error(results: tuple[Path, Results]) -> None:
    table = subset.features(results[1])
    z = subset.standardised(table)
    weights, error = subset.weights_of(z, range(len(z)))
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all() and error < 1e-6
    for found in subset.sweep(table, 6):
        assert sum(found.weights) == pytest.approx(1) and min(found.weights) >= 0
        assert len(set(found.chosen)) == found.k
        assert all(found.cluster[name] == i for i, name in enumerate(found.chosen))


def test_two_kinds_of_workloads_are_represented_by_a_subset_of_two() -> None:
    rng = random.Random(1)
    rows = {f"g/{kind}{i}": [kind + rng.gauss(0, 1e-6), 2 * kind] for kind in (0, 5) for i in range(5)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["log ratio a", "log ratio b"])
    for method in subset.METHODS:
        chosen = subset.choose(list(table.index), subset.standardised(table), method, 2)
        assert {name[2] for name in chosen.chosen} == {"0", "5"}
        assert chosen.accuracy < 1e-3 and chosen.representativeness < 1e-3
        assert all(abs(miss) < 1e-3 for miss in subset.held_out(table, chosen).values())


def test_operations_of_a_raw_log_are_counted_by_the_same_kinds() -> None:
    raw = 'chunk 2 at 0x1\n     64 4 OPEN fd=-100 arg=0x0 aux=0x0 -> 3 "/a"\n     96 5 IDENT x\n    128 6 EXEC y\n'
    counted = by_category(predict.operations(raw), BY_OPERATION)
    assert (counted["file"], counted["exec"], counted["other"]) == (1, 1, 1)


def test_a_matrix_without_deep_logs_has_no_table_of_them(results: tuple[Path, Results]) -> None:
    assert tables.deep(results[1]).rows == []


def test_the_report_is_complete_needs_no_network_and_lists_omissions(
    results: tuple[Path, Results], tmp_path: Path
) -> None:
    whole, summary, picture = (path.read_text() for path in write(results[0], tmp_path))
    assert "no &lt;counters&gt;" in whole and "| rr |" in summary
    assert "| slow | 1 | 0.7500 | 0.8000 | 1.0000 | 1.0000 |" in summary
    assert whole.count("<svg") == 6
    assert picture in whole and "](standing.svg)" in summary
    assert not [part for part in ("src=", "<link", "@import", "fetch(") if part in whole]


def test_the_first_sentences_name_the_cost_and_the_recall_of_each_collector(results: tuple[Path, Results]) -> None:
    first, second = conclusions(results[1])[:2]
    assert first.startswith("Over 4 groups backstory takes 1.01 [") and "sees" not in first
    assert second.startswith("slow takes ") and second.endswith(
        "sees 75 % of the files and 100 % of the process starts."
    )


def test_only_a_share_of_1_is_called_100_percent() -> None:
    assert [percent(share) for share in (1.0, 0.9997, 0.999999, 0.5697)] == ["100 %", "99.97 %", "almost 100 %", "57 %"]


def test_the_picture_has_a_point_per_collector_and_marks_those_without_starts(
    results: tuple[Path, Results],
) -> None:
    rows = results[1].rows.copy()
    rows.loc[rows["kind"] == "quality", ["starts_recalled", "starts_true"]] = float("nan")
    drawn = plots.standing(Results(rows, []))
    assert "<!-- slow -->" in drawn and "<!-- slow (records none) -->" in drawn
    assert "<!-- backstory -->" not in drawn, "its quality was not measured"


def test_a_group_whose_name_has_a_slash_keeps_it_in_the_plot() -> None:
    table = pd.DataFrame({"a": [1.0, 2, 3, 5], "b": [2.0, 1, 5, 3]}, index=["c/gcc/x", "c/gcc/y", "c/latex/x", "d/z"])
    chosen = subset.choose(list(table.index), subset.standardised(table), "Ward", 2)
    drawn = plots.scatter(table, chosen, {name: name.rpartition("/")[0] for name in table.index})
    assert all(f"<!-- {group} -->" in drawn for group in ("c/gcc", "c/latex", "d"))


def test_totals_stand_below_the_sorted_rows_and_only_prose_is_wrapped(results: tuple[Path, Results]) -> None:
    whole = page(results[1])
    assert "<tfoot><tr><td>geometric mean of the 4 groups that all finished</td>" in whole
    assert whole.count("<tfoot>") == 2 and whole.count("<table class=prose>") == 3


def test_the_machine_table_lists_each_different_value_once(results: tuple[Path, Results]) -> None:
    plans = [{"machine": {"kernel": "k", "collectors": {"c": v}}, "options": {"cut": 20.0}} for v in ("1", "2")]
    rows = tables.machine(Results(results[1].rows, plans)).rows
    assert rows == [["kernel", "k"], ["collectors: c", "1; 2"], ["started", "None"], ["option: cut", "20.0"]]


def test_parquet_is_never_overwritten_and_grows_with_the_rows(results: tuple[Path, Results]) -> None:
    journal = Journal(results[0])
    (first,) = results[0].glob("*.parquet")
    before = first.read_bytes()
    journal.append({"kind": "counts", "workload": "g/x", "group": "g", "counts": {}})
    load(results[0])
    assert first.read_bytes() == before
    assert len(list(results[0].glob("*.parquet"))) == 2
