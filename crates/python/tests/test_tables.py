"""Results as tables, compared with the JSON of the command line, which other code writes."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
from typing import Any

import backstory as bs
import pytest
from conftest import ROOT

MOMENTS = {"started", "ended", "last_used", "start", "end", "mtime", "ctime", "birth"}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Converts a row to the values that JSON has."""
    found = {}
    for name, value in row.items():
        if isinstance(value, datetime.datetime):
            value = value.timestamp()
        found[name] = value
    return found


def assert_same(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Asserts that all fields in both are equal. Times are exact to the microsecond."""
    assert len(ours) == len(theirs)
    for our, their in zip(map(plain, ours), theirs):
        both = our.keys() & their.keys()
        assert len(both) >= 5
        for name in both:
            if name in MOMENTS and their[name] is not None:
                assert our[name] == pytest.approx(their[name], abs=2e-6), name
            elif name != "tags":
                assert our[name] == their[name], name


def test_runs_files_and_processes_are_those_of_the_command_line(recorded: Any) -> None:
    bs.run(["sh", "-c", "exit 3"], check=False)
    store = bs.Store()
    assert_same(store.runs().to_dicts(), recorded.json_of("log"))
    run = store.run("pipeline")
    assert_same(run.files().to_dicts(), recorded.json_of("files", "pipeline"))
    assert_same(run.processes().to_dicts(), recorded.json_of("processes", "pipeline"))
    assert run.command[:2] == ["sh", "-c"]
    assert store.run().exit == 3


def test_a_lineage_has_the_nodes_and_links_of_the_command_line(recorded: Any) -> None:
    for question in ("of", "uses"):
        path = "few.csv" if question == "of" else "raw.csv"
        ours = getattr(bs.Store(), question)(path)
        theirs = recorded.json_of(question, path)
        assert (ours.roots, ours.cut) == (theirs["roots"], theirs["cut"])
        links = [plain(row) for row in ours.to_dicts()]
        assert len(links) == len(theirs["links"])
        for our, their in zip(links, theirs["links"]):
            assert {k: our[k] for k in ("from", "to", "flow", "how", "certainty")} == {
                k: their[k] for k in ("from", "to", "flow", "how", "certainty")
            }
        for our, their in zip(ours.nodes.to_dicts(), theirs["nodes"]):
            for name in ("type", "id", "run", "kind", "path", "version", "digest", "pid", "argv"):
                if name in their:
                    assert our[name] == their[name], name
            if their["type"] == "entity" and their["identity"]:
                for name in ("dev", "ino", "size", "mode"):
                    assert our[name] == their["identity"][name], name


def test_steps_are_those_of_the_command_line(recorded: Any) -> None:
    ours = bs.Store().of("few.csv")
    theirs = recorded.json_of("of", "few.csv", "--level", "step")
    assert [row["command"] for row in ours.steps] == [row["command"] for row in theirs["steps"]]
    assert [row["inputs"] for row in ours.steps] == [row["inputs"] for row in theirs["steps"]]
    assert [row["outputs"] for row in ours.steps] == [row["outputs"] for row in theirs["steps"]]
    assert [row["path"] for row in ours.files] == [row["path"] for row in theirs["files"]]


def test_a_pandas_frame_has_the_values_of_the_command_line(recorded: Any) -> None:
    pandas = pytest.importorskip("pandas")
    theirs = recorded.json_of("files", "pipeline")
    frame = bs.Store().run("pipeline").files().to_pandas()
    assert list(frame["path"]) == [row["path"] for row in theirs]
    sizes = [None if pandas.isna(size) else int(size) for size in frame["size"]]
    assert sizes == [row["size"] for row in theirs]
    assert [list(words) for words in frame["access"]] == [row["access"] for row in theirs]
    assert list(frame["certainty"].astype(str)) == [row["certainty"] for row in theirs]
    assert str(frame["last_used"].dtype) == "datetime64[ns, UTC]"
    seconds = frame["last_used"].astype("int64") / 1e9
    assert list(seconds) == pytest.approx([row["last_used"] for row in theirs], abs=1e-6)
    links = bs.Store().of("few.csv").to_pandas()
    expected = recorded.json_of("of", "few.csv")["links"]
    assert list(links["from"]) == [row["from"] for row in expected]
    assert [None if pandas.isna(how) else how for how in links["how"]] == [
        row["how"] for row in expected
    ]
    processes = bs.Store().run("pipeline").processes().to_pandas()
    exits = [None if pandas.isna(code) else int(code) for code in processes["exit"]]
    assert exits == [row["exit"] for row in recorded.json_of("processes", "pipeline")]


def test_polars_and_arrow_share_the_memory_of_a_table(recorded: Any) -> None:
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    answer = bs.Store().of("few.csv")
    nodes = answer.nodes
    rows = nodes.to_dicts()
    for frame in (nodes.to_polars(), polars.DataFrame(nodes)):
        assert frame["path"].to_list() == [row["path"] for row in rows]
        assert frame["version"].to_list() == [row["version"] for row in rows]
    table = nodes.to_arrow()
    assert table["argv"].to_pylist() == [row["argv"] for row in rows]
    assert table.schema.field("mtime").type == pyarrow.timestamp("ns", "UTC")
    # Arrow has the same buffer, not a copy of it.
    address = answer.to_arrow()["from"].chunk(0).buffers()[1].address
    interface = answer._table.buffers("from")[0].__array_interface__
    assert interface["data"][0] == address


def test_a_table_outlives_its_answer_and_its_store(recorded: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(bs.Store().of("few.csv").nodes)
    import gc

    gc.collect()
    assert table.num_rows == len(recorded.json_of("of", "few.csv")["nodes"])
    assert table.validate(full=True) is None


def test_networkx_has_the_same_edges(recorded: Any) -> None:
    networkx = pytest.importorskip("networkx")
    theirs = recorded.json_of("of", "few.csv")
    graph = bs.Store().of("few.csv").to_networkx()
    assert sorted((a, b) for a, b in graph.edges()) == sorted(
        (link["from"], link["to"]) for link in theirs["links"]
    )
    reached = networkx.ancestors(graph, 0)
    paths = {graph.nodes[node].get("path") for node in reached}
    assert str(recorded.directory / "raw.csv") in paths
    steps = bs.Store().of("few.csv").to_networkx(level="step")
    assert ("step", 0) in steps and steps.nodes["file", 0]["type"] == "file"
    with pytest.raises(bs.MisuseError, match="no level"):
        bs.Store().of("few.csv").to_networkx(level="galaxy")


def test_a_name_that_is_not_utf8_comes_back_as_python_has_it(workspace: Any) -> None:
    name = os.fsdecode(b"caf\xe9\n<b>.txt")
    bs.run(["sh", "-c", 'echo x > "$1"', "sh", name])
    answer = bs.Store().run().files()
    path = os.path.join(workspace.directory, name)
    assert path in answer["path"]
    assert path in [row["path"] for row in workspace.json_of("files")]
    assert bs.Store().of(name).nodes["path"][0] == path
    row = answer["path"].index(path)
    html = answer._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;" in html and "\\udce9" in html
    if pyarrow := pytest.importorskip("pyarrow"):
        table = pyarrow.table(answer)
        assert table["path"][row].as_py().endswith("caf\\xe9\n<b>.txt")
        assert table["path_bytes"][row].as_py() == os.fsencode(path)
        assert table["path_bytes"].null_count == len(table) - 1
    pandas = pytest.importorskip("pandas")
    assert isinstance(answer.to_pandas(), pandas.DataFrame)
    assert answer.to_pandas()["path"][row] == path


def test_an_error_has_the_words_of_the_command_line(recorded: Any) -> None:
    store = bs.Store()
    for words, ask in [
        (["of", "nowhere"], lambda: store.of("nowhere")),
        (["files", "nobody"], lambda: store.run("nobody")),
        (["contents", "nowhere"], lambda: store.contents("nowhere")),
        (["of", "raw.csv", "--exclude", "["], lambda: store.of("raw.csv", exclude=["["])),
    ]:
        with pytest.raises(bs.BackstoryError) as raised:
            ask()
        assert str(raised.value) == recorded.fails(*words), words
    with pytest.raises(LookupError):
        store.of("nowhere")
    with pytest.raises(bs.NotFoundError) as raised:
        bs.Store(recorded.directory / "no-store")
    assert "no-store" in str(raised.value)


def test_a_version_has_its_content_and_its_difference(workspace: Any) -> None:
    (workspace.directory / "in").write_text("1\n")
    first = bs.run(["sh", "-c", "cat in > out"])
    # Contents are stored after the run. `contents` waits for the storing.
    assert bs.Store().contents("out") == b"1\n"
    (workspace.directory / "in").write_text("2\n")
    second = bs.run(["sh", "-c", "cat in > out"])
    store = bs.Store()
    assert store.contents("out") == b"2\n"
    assert store.contents("out", first) == b"1\n"
    assert store.contents(f"out@{first.id}") == b"1\n"
    diff = store.diff(first, second)
    expected = workspace.json_of("diff", first.id, second.id, status=1)
    assert not diff.same and (diff.a, diff.b) == (expected["a"], expected["b"])
    assert_same(diff.to_dicts(), expected["differences"])
    assert store.diff(second, second).same
    [state] = store.status("out").to_dicts()
    [expected_state] = workspace.json_of("status", "out")
    assert (state["state"], state["path"]) == (expected_state["state"], expected_state["path"])


def test_a_difference_names_the_causes_without_a_byte(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("valgrind") is None or shutil.which("gcc") is None:
        pytest.skip("the byte engine: needs valgrind and gcc")
    engine = workspace.directory.parent / "engine"
    build = [ROOT / "bytes" / "build", engine]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if "has no headers for tools" in built.stderr:
        pytest.skip(built.stderr)
    assert built.returncode == 0, built.stderr
    monkeypatch.setenv("BACKSTORY_BYTE_ENGINE", str(engine))
    runs = []
    for used, unused in (("one\n", "three\n"), ("two\n", "four\n")):
        (workspace.directory / "ia").write_text(used)
        (workspace.directory / "ib").write_text(unused)
        runs.append(bs.run(["sh", "-c", "awk 'FNR == NR { next } { print }' ib ia > oa"]))
        # Contents are stored after the run. `contents` waits for the storing.
        assert bs.Store().contents("oa") == used.encode()
        refine = [workspace.program, "refine", runs[-1].id]
        refined = subprocess.run(refine, capture_output=True, text=True, check=False)
        if "namespace" in refined.stderr:
            pytest.skip(refined.stderr)
        assert refined.returncode == 0, refined.stderr
    diff = bs.Store().diff(*runs).to_dicts()
    expected = workspace.json_of("diff", *(run.id for run in runs), status=1)
    assert_same(diff, expected["differences"])
    at = {os.path.basename(row["of"]): index for index, row in enumerate(diff)}
    assert diff[at["oa"]]["no_byte_of"] == [at["ib"]]


def test_a_run_that_ends_later_is_in_the_next_answer(recorded: Any) -> None:
    store = bs.Store()
    before = len(store.runs())
    bs.run(["true"], name="later")
    assert len(store.runs()) == before + 1
    assert store.run("later").name == "later"
    assert [run.name for run in store.runs(name="later")] == ["later"]
    assert len(store.runs(limit=1)) == 1


def test_a_picture_is_well_formed_and_names_steps_and_files(recorded: Any) -> None:
    from xml.etree import ElementTree

    answer = bs.Store().of("few.csv")
    tree = ElementTree.fromstring(answer.to_svg())
    texts = "".join(tree.itertext())
    for word in ("sort", "raw.csv", "sorted.csv", "few.csv"):
        assert word in texts, word
    assert answer.to_svg() in answer._repr_html_()
    json.dumps(answer._repr_html_())
