"""Erased runs are in no file of the lake, and private names never were."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import PACKAGE, Machine, answer, answers, command
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from backstory_lake import erasure, upkeep
from backstory_lake.errors import LakeError, MisuseError
from backstory_lake.lake import Lake
from backstory_lake.privacy import Config, Privacy
from backstory_lake.rewriting import replace
from backstory_lake.tables import PROCESSES, TABLES


def texts(lake: Path) -> Iterator[bytes]:
    """All values of all Parquet files, and the bytes of all other files."""
    for file in lake.rglob("*"):
        if file.suffix == ".parquet":
            for row in pq.read_table(file).to_pylist():
                yield repr(row).encode(errors="replace")
        elif file.suffix == ".avro":
            # A manifest has the least and greatest values of columns.
            yield bytes(str(_avro(file)), "utf8", errors="replace")
            yield file.read_bytes()
        elif file.is_file():
            yield file.read_bytes()


def _avro(file: Path) -> list[object]:
    with AvroFile(PyArrowFileIO().new_input(str(file))) as reader:
        return list(reader)


def has(lake: Path, word: str) -> bool:
    """True if any file of the lake has a word."""
    return any(word.encode() in text for text in texts(lake))


def tables_with(lake: Path, word: str) -> set[str]:
    """The tables whose files have a word."""
    return {of.name for of in TABLES if has(lake / "backstory" / of.name, word)}


def test_a_forgotten_run_is_in_no_file_and_never_comes_back(machine: Machine, lake: Path) -> None:
    kept = machine.record("sort in > kept")
    gone = machine.record("sort in > whistleblower")
    machine.ship(lake, gone)
    machine.ship(lake, kept)
    assert has(lake, "whistleblower")
    ended = command("forget", "--lake", str(lake), gone)
    assert ended.returncode == 0 and "none has a row" in ended.stdout
    assert not has(lake, "whistleblower")
    assert tables_with(lake, gone) == {"runs"}
    assert machine.ship(lake).forgotten == [gone]
    assert answer(lake, "SELECT run FROM runs") == [(kept,)]
    edges = machine.rows(f"SELECT count(*) n FROM edges WHERE run = '{kept}'")[0]["n"]
    assert answer(lake, "SELECT count(*) FROM edges") == [(edges,)]
    with pytest.raises(LakeError, match="has no run"):
        erasure.forget(Lake.open(str(lake)), ["zzzzzzzz"])


def test_what_a_store_forgets_leaves_the_lake_with_the_next_shipment_that_asks_for_it(
    machine: Machine, lake: Path
) -> None:
    machine.record("sort in > kept")
    machine.record("sort in > whistleblower")
    machine.ship(lake)
    gone = machine.record("sort in > deserter")
    machine.ship(lake)
    machine.program("forget", "--yes", str(machine.directory / "whistleblower"))
    machine.program("rm", gone)
    assert machine.ship(lake).erased == []
    assert has(lake, "whistleblower") and has(lake, "deserter")
    done = machine.ship(lake, forget=True)
    assert gone in done.erased and len(done.erased) == 2
    assert not has(lake, "whistleblower") and not has(lake, "deserter")
    assert answer(lake, "SELECT run FROM runs") == [
        (machine.rows("SELECT run FROM runs")[0]["run"],)
    ]
    assert machine.ship(lake, forget=True).erased == []


@pytest.mark.long
def test_a_store_erases_no_run_of_another_machine(machine: Machine, lake: Path) -> None:
    other = Machine(machine.directory.with_name("other"))
    (other.directory / "in").write_text("c\n")
    for one in (machine, other):
        one.record("sort in > out")
        one.ship(lake)
    before = answer(lake, "FROM edges ORDER BY ALL")
    assert other.ship(lake, forget=True).erased == []
    assert answer(lake, "FROM edges ORDER BY ALL") == before


@pytest.mark.parametrize(
    "step",
    ["_without", *(pytest.param(one, marks=pytest.mark.long) for one in ("_check", "delete"))],
)
def test_an_interrupted_erasure_is_ended_by_the_next_one(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    gone = machine.record("sort in > whistleblower")
    machine.ship(lake)
    with monkeypatch.context() as patch:
        if step == "delete":
            patch.setattr(PyArrowFileIO, "delete", interrupted)
        else:
            patch.setattr(erasure, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            erasure.forget(Lake.open(str(lake)), [gone])
    asked = command("query", "--lake", str(lake), "SELECT 1").stderr
    # Later steps remove files alone.
    assert (f"`backstory-lake forget {gone}` ends it" in asked) == (step == "_without"), asked
    # As if an hour had passed: no shipment can be in progress.
    monkeypatch.setattr(erasure, "IN_PROGRESS", timedelta(0))
    machine.ship(lake, forget=True)
    assert not has(lake, "whistleblower")
    assert tables_with(lake, gone) == {"runs"}
    assert erasure.pending(Lake.open(str(lake))) == []


def interrupted(*_: object) -> None:
    """Ends a command as a signal does."""
    raise KeyboardInterrupt


@pytest.mark.long
def test_forget_reports_a_file_that_still_has_the_run(machine: Machine, lake: Path) -> None:
    gone = machine.record("sort in > out")
    machine.ship(lake)
    file = next((lake / "backstory" / "edges" / "data").rglob("*.parquet"))
    file.with_name("copy.parquet").write_bytes(file.read_bytes())
    ended = command("forget", "--lake", str(lake), gone)
    assert ended.returncode == 1 and "copy.parquet still has rows" in ended.stderr


def test_compact_joins_files_drops_interrupted_shipments_and_changes_no_answer(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        run = machine.record(f"sort in > {name}")
        machine.ship(lake, run)
    gone = machine.record("sort in > interrupted")
    with monkeypatch.context() as patch:
        patch.setattr("backstory_lake.shipping._publish", lambda *_: None)
        machine.ship(lake)
    questions = [f"FROM {of} ORDER BY ALL" for of in ("runs", "edges", "files")]
    before = answers(lake, *questions)
    assert has(lake, "interrupted")
    ask = ("query", "--lake", str(lake), "SELECT 1")
    assert command(*ask).stderr.startswith(loose(lake, gone))
    opened = Lake.open(str(lake))
    first = upkeep.compact(opened)
    assert first.after < first.before
    # Perhaps that shipment is in progress: it stays until a later `compact`.
    assert has(lake, "interrupted")
    upkeep.compact(opened, grace=0)
    assert not has(lake, "interrupted")
    assert command(*ask).stderr == ""
    assert answers(lake, *questions) == before
    assert len(machine.ship(lake).sent) == 1


def loose(lake: Path, run: str) -> str:
    """The beginning of the message about a run whose shipment was interrupted."""
    files = (lake / "backstory" / "processes").rglob("*.parquet")
    columns = (pq.read_table(file, columns=["run"])["run"] for file in files)
    count = sum(one == run for column in columns for one in column.to_pylist())
    assert count
    many = "1 process" if count == 1 else f"{count} processes"
    return f"backstory-lake: {many} of no known run in {lake}: "


def test_a_question_says_how_many_processes_known_runs_lack(machine: Machine, lake: Path) -> None:
    run = machine.record("sort in > out")
    machine.ship(lake)
    count = answer(lake, "SELECT processes FROM runs")[0][0]
    runs = pa.array([run])
    replace(Lake.open(str(lake)), PROCESSES, lambda table: erasure._without(table, PROCESSES, runs))
    asked = command("query", "--lake", str(lake), "SELECT 1")
    missing = f"backstory-lake: {count} processes of known runs are missing in {lake}: "
    assert asked.returncode == 0 and asked.stderr.startswith(missing), asked.stderr


def test_the_count_of_loose_processes_reads_none_of_their_edges(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = machine.record("sort in > interrupted")
    monkeypatch.setattr("backstory_lake.shipping._publish", lambda *_: None)
    machine.ship(lake)
    # No digest finds it: only a question that reads the rows would fail.
    monkeypatch.setattr("backstory_lake.digests.check_once", lambda *_: None)
    for file in (lake / "backstory" / "edges" / "data").rglob("*.parquet"):
        content = bytearray(file.read_bytes())
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        content[4:end] = bytes(end - 4)
        file.write_bytes(content)
    asked = command("query", "--lake", str(lake), "SELECT 1")
    assert asked.returncode == 0
    assert asked.stderr.startswith(loose(lake, gone))


def test_compact_takes_a_lake_without_runs(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Lake.open(str(lake), create=True)
    assert upkeep.compact(opened) == upkeep.Compacted()
    machine.record("sort in > interrupted")
    monkeypatch.setattr("backstory_lake.shipping._publish", lambda *_: None)
    machine.ship(lake)
    assert upkeep.compact(opened).after > 0
    assert upkeep.compact(opened, grace=0).after == 0


@pytest.mark.long
def test_expired_days_leave_the_lake_and_are_not_shipped_again(
    machine: Machine, lake: Path
) -> None:
    run = machine.record("sort in > old")
    machine.ship(lake)
    day = date.fromisoformat(answer(lake, "SELECT started::DATE::VARCHAR FROM runs")[0][0])
    opened = Lake.open(str(lake))
    assert erasure.expire(opened, day) == 0
    assert erasure.expire(opened, day + timedelta(days=1)) == 1
    assert answer(lake, "SELECT run FROM runs UNION ALL SELECT run FROM edges") == []
    assert not list((lake / "backstory").rglob("*.parquet"))
    assert machine.ship(lake).expired == [run]


def private(**given: object) -> Config:
    return Config(**given)  # type: ignore[arg-type]


def test_private_paths_stay_at_home(machine: Machine, lake: Path) -> None:
    (machine.directory / "diary").mkdir()
    (machine.directory / "diary" / "monday").write_text("x" * 100)
    (machine.directory / "plans").write_text("y" * 100)
    machine.record("cat diary/monday plans > out; sort in > sorted; cd diary; cp monday tuesday")
    digests = [
        row["digest"]
        for row in machine.rows(
            "SELECT digest FROM files WHERE path LIKE '%/plans' AND digest IS NOT NULL"
        )
    ]
    home = str(machine.directory)
    config = private(
        omitted=[f"{home}/diary/**"], hashed=[f"{home}/plans"], key=b"0123456789abcdef"
    )
    machine.ship(lake, config=config)
    for word in ("monday", "tuesday", "plans", *digests):
        assert not has(lake, word), word
    assert has(lake, f"{home}/sorted")
    name = Privacy(config).pseudonym(f"{home}/plans")
    found = answer(
        lake, f"SELECT count(*) FROM files JOIN edges USING (file) WHERE path = '{name}'"
    )
    assert found[0][0] > 0
    # No row refers to a version that stayed at home.
    for of in ("edges", "derivations"):
        lost = f"SELECT count(*) FROM {of} WHERE file NOT IN (SELECT file FROM files)"
        assert answer(lake, lost) == [(0,)]


#: A UNIX socket, and a client of it.
SOCKET = """
import os, socket, sys
server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
server.bind(sys.argv[1])
server.listen()
client.connect(sys.argv[1])
accepted, _ = server.accept()
client.sendall(b"question")
accepted.sendall(accepted.recv(9))
client.recv(9)
"""


def test_private_sockets_stay_at_home(machine: Machine, lake: Path) -> None:
    (machine.directory / "sockets.py").write_text(SOCKET)
    for name in ("omitted/agent", "hashed/agency", "plain/open"):
        machine.record(f"python3 sockets.py {machine.directory}/{name}")
    below = f"{machine.directory}/{{}}/**"
    rules = {"omitted": [below.format("omitted")], "hashed": [below.format("hashed")]}
    machine.ship(lake, config=Config(**rules, key=b"0123456789abcdef"))
    assert not has(lake, "agent") and not has(lake, "agency")
    assert answer(lake, "SELECT count(*) FROM files WHERE path LIKE 'private:%'") != [(0,)]
    found = answer(lake, "SELECT DISTINCT address FROM peers")
    assert found == [(f"unix:{machine.directory}/plain/open",)]


def test_the_same_key_gives_the_same_pseudonym_and_another_key_another(tmp_path: Path) -> None:
    for number, key in enumerate((b"k" * 16, b"k" * 16, b"l" * 16)):
        (tmp_path / f"key{number}").write_bytes(key)
        (tmp_path / f"{number}.toml").write_text(
            f'owner = "lab"\n[private]\nhash = ["/x/**"]\nkey_file = "{tmp_path}/key{number}"\n'
        )
    names = [
        Privacy(Config.read(str(tmp_path / f"{number}.toml"))).pseudonym("/x/a")
        for number in range(3)
    ]
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("owner = 1", "owner has the wrong type"),
        ("[private]\nhash = ['/x']", "needs private.key_file"),
        ("colour = 'red'", "unknown: colour"),
        ("[private", "is not TOML"),
        ("[private]\nomit = [1]", "wrong type"),
    ],
)
def test_a_wrong_configuration_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "ship.toml").write_text(text)
    with pytest.raises(MisuseError, match=words):
        Config.read(str(tmp_path / "ship.toml"))


#: Commands with a secret in the place of {}: one for each form of docs/security.md.
SECRETS = (
    "env API_TOKEN={} true",
    "env true --password={}",
    "env true db.passwd={}",
    "env true --api-key {}",
    "env true -H 'Authorization: Bearer {}'",
    "env true -H 'Proxy-Authorization: Basic {}'",
    "env true -H 'X-Api-Key: {}'",
    "env true -H 'Private-Token: {}'",
    "env true https://user:{}@host/path",
    "sh -c 'API_TOKEN={} true'",
    "sh -c 'true --password={}; true'",
    "sh -c 'true --token {} in; true'",
    "sh -c 'true -H \"Authorization: Bearer {}\"; true'",
    "sh -c 'true https://user:{}@host/path; true'",
)


def test_no_secret_of_a_command_line_or_environment_is_in_the_lake(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cr3t-of-the-environment")
    lines = [form.format(f"hunter2-of-form-{at:02}") for at, form in enumerate(SECRETS)]
    # A script after `-c`, and a command line of many words.
    machine.record("; ".join(lines))
    machine.program("record", "--wait", "--", *shlex.split(" ".join(lines)))
    machine.ship(lake)
    everything = b"\n".join(texts(lake))
    # The command lines themselves are there.
    for word in (b"db.passwd=<redacted>", b"X-Api-Key: <redacted>", b":<redacted>@host/path"):
        assert word in everything, word
    assert b"s3cr3t-of-the-environment" not in everything
    for at, form in enumerate(SECRETS):
        assert f"hunter2-of-form-{at:02}".encode() not in everything, form


@pytest.mark.long
def test_owner_and_sensitivity_are_in_every_row(machine: Machine, lake: Path) -> None:
    machine.record("sort in > out")
    machine.ship(lake, config=private(owner="lab", sensitivity="internal"))
    for of in ("runs", "processes", "files", "edges", "steps"):
        assert answer(lake, f"SELECT DISTINCT owner, sensitivity FROM {of}") == [
            ("lab", "internal")
        ]


def test_the_guides_view_has_the_files_of_one_sensitivity(machine: Machine, lake: Path) -> None:
    machine.record("sort in > internal")
    machine.ship(lake, config=private(sensitivity="internal"))
    public = machine.record("sort in > public")
    machine.ship(lake, config=private(sensitivity="public"))
    guide = (PACKAGE.parent / "docs" / "howto" / "lake.md").read_text()
    (view,) = re.findall(r"CREATE VIEW open_files AS\n(.*?);", guide, re.DOTALL)
    files = re.sub(r"backstory\.(\w+)", r"\1_table", view)
    assert answer(lake, f"SELECT DISTINCT run FROM ({files})") == [(public,)]
