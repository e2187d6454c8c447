"""The table of recall and precision by engine and granularity."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from backstory_bench.byte_truth.command import BUILD
from backstory_bench.byte_truth.levels import SOURCE, counted, levels, sources
from backstory_bench.byte_truth.programs import compress
from backstory_bench.byte_truth.tables import byte_tables
from backstory_bench.byte_truth.tasks import TASKS, inputs

HEADER = Path("/usr/include/valgrind/pub_tool_tooliface.h")
COMPUTED = {"sum", "base64", "encrypt", "report"}


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, bytes]:
    """The program's outputs by name, without any recorder."""
    for name, content in inputs(20).items():
        (tmp_path / name).write_bytes(content)
    subprocess.run(["gcc", "-O1", "-o", str(tmp_path / "tasks"), str(SOURCE)], check=True)
    subprocess.run(["./tasks"], cwd=tmp_path, check=True)
    return {name: (tmp_path / f"{name}.out").read_bytes() for name in TASKS}


def test_the_truth_of_a_task_is_that_of_what_the_program_writes(outputs: dict[str, bytes]) -> None:
    given = inputs(20)
    for name, (_, truth_of) in TASKS.items():
        truth = truth_of(given)
        assert outputs[name] and len(truth) == len(outputs[name]), name
        if name in COMPUTED:
            assert all(truth), name
            continue
        for byte, origin in zip(outputs[name], truth, strict=True):
            assert {given[file][at] for file, at in origin} in ({byte}, set()), name


def test_a_changed_input_byte_changes_outputs_of_its_truth_only(tmp_path: Path, outputs: dict[str, bytes]) -> None:
    given = inputs(20)
    # No case decides by the last digit of a row.
    changed = given["sum.in"][:7] + bytes([given["sum.in"][7] ^ 1]) + given["sum.in"][8:]
    (tmp_path / "sum.in").write_bytes(changed)
    subprocess.run(["./tasks"], cwd=tmp_path, check=True)
    for name, (_, truth_of) in TASKS.items():
        later = (tmp_path / f"{name}.out").read_bytes()
        known = [("sum.in", 7) in origin for origin in truth_of(given)]
        differs = [a != b for a, b in zip(outputs[name], later, strict=True)]
        assert all(k for k, d in zip(known, differs, strict=True) if d), name
    assert (tmp_path / "sum.out").read_bytes() != outputs["sum"]


def test_the_sources_of_the_writing_call_are_those_that_it_read_itself(tmp_path: Path) -> None:
    def file(name: str) -> dict[str, object]:
        return {"type": "entity", "id": name, "kind": "file", "path": str(tmp_path / name)}

    memory = {"type": "entity", "id": "memory", "kind": "memory", "path": "memory:1"}
    calls = [{"type": "activity", "id": name} for name in ("writer", "earlier")]
    nodes = [file("b.out"), calls[0], memory, file("b.in"), calls[1], file("a.in"), file("lib.so")]
    edges = [(1, 0), (2, 1), (3, 1), (4, 2), (5, 4), (6, 1)]
    answer = {"nodes": nodes, "links": [{"from": cause, "to": effect} for cause, effect in edges]}
    assert sources(answer, tmp_path, nearest=False) == {"a.in", "b.in"}
    assert sources(answer, tmp_path, nearest=True) == {"b.in"}


def test_what_a_level_leaves_out_lowers_recall_and_what_it_adds_lowers_precision() -> None:
    given = inputs(20)
    truth = {name: truth_of(given) for name, (_, truth_of) in TASKS.items()}
    exact = counted("bytes", truth, given)
    assert all((one.recall, one.precision) == (1, 1) for one in exact)
    less = truth | {"permute": [set() for _ in truth["permute"]]}
    assert (counted("call", less, given)[0].recall, counted("call", less, given)[0].precision) == (0, None)
    more = truth | {"permute": [origin | {("sort.in", 0)} for origin in truth["permute"]]}
    assert (counted("files", more, given)[0].recall, counted("files", more, given)[0].precision) == (1, 0.5)


def test_a_level_that_nothing_was_measured_at_has_no_column() -> None:
    figures = {"files_recall": "1", "files_precision": "0.005", "call_recall": "0"}
    rows = [["levels", "permute", name, value] for name, value in figures.items()]
    head, _, line = byte_tables(rows)["levels"]
    assert head == "| case | files | the writing call |"
    assert line == "| permute | 100.00 %, 0.50 % | 0.00 %, – |"


def test_a_compressed_file_has_each_literal_and_its_checksum_has_every_byte() -> None:
    case = compress(40)
    size = len(case.inputs["in"])
    assert [len(origin) for _, origin in case.truth[:10]] == [0] * 10, "the header"
    assert [len(origin) for _, origin in case.truth[-8:]] == [size] * 4 + [0] * 4, "checksum and size"
    literals = {at for _, origin in case.truth[:-8] for _, at in origin}
    content = case.inputs["in"]
    assert 0 < len(literals) < size
    assert {content[at] for at in literals} == set(content), "each byte is first sent as a literal"


def test_a_call_leaves_out_what_other_functions_read_and_bytes_are_exact(tmp_path: Path) -> None:
    backstory = os.environ.get("BACKSTORY")
    if not backstory or not shutil.which("valgrind") or not HEADER.exists():
        pytest.skip("needs BACKSTORY, and valgrind with its headers for tools")
    subprocess.run([str(BUILD), str(tmp_path)], check=True, capture_output=True)
    found = {(one.case, one.level): one for one in levels(8, tmp_path, backstory)}
    for case, _ in TASKS.values():
        bytes_, files, functions = (found[case, level] for level in ("bytes", "files", "functions"))
        assert (bytes_.recall, bytes_.precision) == (1, 1), case
        assert files.recall == functions.recall == 1, case
    sort = found["sort", "call"].precision, found["sort", "files"].precision
    assert sort[0] and sort[1] and sort[0] > 2 * sort[1]
    assert found["what another function computed", "call"].recall == 0
