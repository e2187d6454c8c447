"""A broken collector is stopped and marked, the matrix continues, and no measurement is lost."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from backstory_bench.cli import main
from backstory_bench.collectors import COLLECTORS
from backstory_bench.collectors.template import BadTemplate, from_template
from backstory_bench.matrix.cgroup import Group, clear_stale
from backstory_bench.matrix.execute import Limits, run
from backstory_bench.matrix.journal import Journal, Unusable
from backstory_bench.matrix.runner import Options, Runner, order
from backstory_bench.measure import become_subreaper
from backstory_bench.workloads import Instance

FAKES = {
    "good": "env {cmd}",
    "hangs": "sh -c 'sleep 600' x {cmd}",
    "crashes": "sh -c 'echo sorry >&2; kill -SEGV $$' x {cmd}",
    "changes": """sh -c '"$@"; echo more >>made' x {cmd}""",
    "loses": "sh -c 'exit 0' x {cmd}",
    "fails": """sh -c '"$@"; exit 3' x {cmd}""",
    "leaves": """sh -c 'setsid sleep 600 & until grep -q sleep /proc/$!/comm; do :; done; "$@"' x {cmd}""",
}
WORK = Instance("g", "w", "writes a file", "echo text >made", clean=("made",), outputs=("made",))
# A busy machine may run nothing of a command for seconds.
PATIENT = Options(seed=1, iterations=1, target_s=0.01, least_limit_s=120.0, settle_s=120.0, tolerance=1e9)
# For collectors that never end, and that leave a process behind.
IMPATIENT = {"hangs": replace(PATIENT, least_limit_s=0.5), "leaves": replace(PATIENT, settle_s=0.3)}


def _run(journal: Journal, names: list[str], work: Path, options: Options = PATIENT) -> None:
    become_subreaper()
    collectors = [COLLECTORS["none"], *(from_template(f"{name}={FAKES[name]}") for name in names)]
    Runner(journal, options, [WORK], collectors, work).run()


def _cells(journal: Journal) -> dict[str, dict[str, object]]:
    return {r["collector"]: r for r in journal.rows() if r["kind"] == "cell"}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    found = Journal(tmp_path / "results")
    found.create({})
    return found


def test_each_kind_of_failure_is_marked_and_the_matrix_continues(journal: Journal, tmp_path: Path) -> None:
    _run(journal, [name for name in FAKES if name not in IMPATIENT], tmp_path)
    cells = _cells(journal)
    for name, options in IMPATIENT.items():
        other = Journal(tmp_path / name)
        other.create({})
        _run(other, [name], tmp_path, options)
        cells[name] = _cells(other)[name]
    marks = {name: cell["mark"] for name, cell in cells.items()}
    assert marks == {
        "none": "ok",
        "good": "ok",
        "hangs": "cut",
        "crashes": "failed",
        "changes": "changed",
        "loses": "changed",
        "fails": "failed",
        "leaves": "left",
    }
    assert cells["crashes"]["stderr"] == "sorry\n"
    assert cells["crashes"]["why"] == "exit status -11 instead of 0"
    assert cells["leaves"]["why"] == "left processes behind: sleep"


def test_a_missing_collector_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "results")
    words = [
        "run",
        "--workloads",
        "Utils bash/shell-incr",
        "--collectors",
        "none,ptu",
        "--iterations",
        "1",
        "--target",
        "0.01",
    ]
    with pytest.MonkeyPatch.context() as context:
        context.delenv("PTU", raising=False)
        assert main([*words, "--no-profile", "--tolerance", "1e9", "--workdir", str(tmp_path), "--out", out]) == 0
    rows = list(Journal(Path(out)).rows())
    assert {r["collector"] for r in rows if r["kind"] == "cell"} == {"none"}
    assert "SKIPPED: ptu: set PTU" in capsys.readouterr().err
    assert "ptu" in Journal(Path(out)).plan()["skipped_collectors"]


def test_a_collector_removed_since_the_plan_is_marked_and_the_matrix_continues(
    journal: Journal, tmp_path: Path
) -> None:
    gone = from_template("gone=/nowhere/collector {cmd}")
    Runner(journal, PATIENT, [WORK], [COLLECTORS["none"], gone], tmp_path).run()
    cell = _cells(journal)["gone"]
    assert (cell["mark"], cell["stderr"]) == ("failed", "/nowhere/collector: No such file or directory\n")


def test_the_start_of_each_working_collector_is_measured_once(journal: Journal, tmp_path: Path) -> None:
    _run(journal, ["good", "crashes"], tmp_path)
    _run(journal, ["good", "crashes"], tmp_path)
    starts = [(r["collector"], r["mark"]) for r in journal.rows() if r["kind"] == "start"]
    assert starts == [("good", "ok"), ("crashes", "failed")]
    (cost,) = (r["start_s"] for r in journal.rows() if r["kind"] == "start" and r["collector"] == "good")
    assert cost >= 0


def test_the_end_of_a_command_is_noticed_at_once(tmp_path: Path) -> None:
    become_subreaper()
    words, limits, late = ["sleep", "0.009"], Limits(9, 1), []
    for _ in range(30):
        began = time.perf_counter()
        subprocess.run(words, start_new_session=True, preexec_fn=lambda: None)
        plainly = time.perf_counter() - began
        late.append(run(words, tmp_path, {"PATH": "/usr/bin:/bin"}, limits, None, tmp_path).wall_s - plainly)
    assert min(late) < 0.002, "a poll would be up to 7 ms late here"


def test_background_and_hanging_processes_are_killed(journal: Journal, tmp_path: Path) -> None:
    _run(journal, ["hangs", "leaves"], tmp_path, replace(PATIENT, least_limit_s=0.5, settle_s=0.3))
    sleeping = [p for p in Path("/proc").glob("[0-9]*/cmdline") if _arguments(p) == ["sleep", "600"] and _ours(p)]
    assert sleeping == []


def _arguments(path: Path) -> list[str]:
    try:
        return path.read_text().split("\0")[:-1]
    except OSError:
        return []


def _ours(path: Path) -> bool:
    try:
        return "backstory-bench" in str((path.parent / "cwd").readlink())
    except OSError:
        return False


def test_an_interrupted_matrix_can_be_resumed(journal: Journal, tmp_path: Path) -> None:
    _run(journal, ["good"], tmp_path)
    rows = list(journal.rows())
    path = journal.directory / "rows.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + b'{"kind":"bl')  # the last row is incomplete
    _run(journal, ["good"], tmp_path)
    again = list(journal.rows())
    assert again[: len(rows) - 1] == rows[:-1], "earlier rows are unchanged"
    assert [r["kind"] for r in again].count("calibrated") == 1
    (block,) = [r for r in again if r["kind"] == "block"]
    counted = [r["collector"] for r in again if r["kind"] == "cell" and r["attempt"] == block["attempt"]]
    assert counted == ["none", "good", "none"], "the interrupted attempt does not count"
    before = path.read_bytes()
    _run(journal, ["good"], tmp_path)
    assert path.read_bytes() == before, "a finished matrix is not measured again"


def test_results_are_never_overwritten(journal: Journal) -> None:
    with pytest.raises(Unusable, match="holds results already"):
        journal.create({})


def test_a_full_disk_loses_nothing(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.append({"kind": "cell", "n": 1})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Unusable, match="No space left"):
        journal.append({"kind": "cell", "n": 2})
    monkeypatch.undo()
    journal.append({"kind": "cell", "n": 3})
    assert [r["n"] for r in journal.rows()] == [1, 3]


def test_a_block_whose_native_runs_differ_is_repeated(journal: Journal, tmp_path: Path) -> None:
    _run(journal, ["good"], tmp_path, replace(PATIENT, tolerance=0.0, repeats=2))
    blocks = [r for r in journal.rows() if r["kind"] == "block"]
    assert [(b["attempt"], b["disturbed"], b["kept"]) for b in blocks] == [
        (0, True, False),
        (1, True, False),
        (2, True, True),
    ]


def test_the_order_is_random_complete_and_determined_by_the_seed() -> None:
    names = [f"w{i}" for i in range(20)]
    one = order(Options(seed=1, iterations=3), names)
    assert one == order(Options(seed=1, iterations=3), names)
    assert one != order(Options(seed=2, iterations=3), names)
    assert sorted(one) == [(i, n) for i in range(3) for n in sorted(names)]
    assert [n for i, n in one if i == 0] != [n for i, n in one if i == 1]


def test_a_group_counts_the_memory_and_time_of_all_its_processes(tmp_path: Path) -> None:
    become_subreaper()
    group = Group.make("test", None)
    if group is None:
        pytest.skip("SKIPPED: no control group can be made here")
    burn = "x=bytearray(60_000_000)\nimport time\ne=time.process_time()+0.2\nwhile time.process_time()<e: pass"
    try:
        out = run(["sh", "-c", f"{sys.executable} -c '{burn}'; true"], tmp_path, {}, Limits(60), group, tmp_path)
    finally:
        group.remove()
    assert out.cpu_s >= 0.2
    assert out.counted_by != "cgroup" or out.memory > 60_000_000
    assert not any(d.exists() for d in group.directories.values())


def test_processes_of_a_killed_matrix_are_killed_by_the_next(tmp_path: Path) -> None:
    maker = subprocess.Popen(["true"])
    maker.wait()
    group = Group.make("stale", None, maker.pid)
    if group is None:
        pytest.skip("SKIPPED: no control group can be made here")
    left = subprocess.Popen(["sleep", "600"], preexec_fn=group.enter)
    clear_stale()
    left.wait(timeout=60)  # without the kill it would sleep for ten minutes
    assert not any(d.exists() for d in group.directories.values())


@pytest.mark.parametrize("text", ["", "x", "x=tool", "=tool {cmd}", "x=tool 'a{cmd}'", "x=tool {cmd} 'open"])
def test_an_invalid_template_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(BadTemplate, match="--collector"):
        from_template(text)


def test_a_template_receives_the_words_of_the_command_unsplit(tmp_path: Path) -> None:
    mine = from_template("mine=tool -o {log}/x -- {cmd}")
    assert mine.command(["sh", "-c", "a  b"], tmp_path) == ["tool", "-o", f"{tmp_path}/x", "--", "sh", "-c", "a  b"]
    assert mine.missing() == "tool is not on the path"


def test_damaged_rows_are_skipped(journal: Journal) -> None:
    (journal.directory / "rows.jsonl").write_bytes(
        b'{"kind":"cell"}\n\xff\xfe\n[1]\n' + json.dumps({"kind": "block"}).encode()
    )
    assert [r["kind"] for r in journal.rows()] == ["cell", "block"]
