"""A lake in a bucket is shipped to, asked and erased from as one in a directory.

The server of buckets is that of `crates/cli/tests/bucket`. It checks the signature of each request.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.fs as fs
import pytest
from conftest import PACKAGE, Machine, answers, command
from test_erasure import has, tables_with

ROOT = PACKAGE.parent
PYTHON = ROOT / ".venv" / "bucket" / "bin" / "python"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON.exists(), reason="needs .venv/bucket (scripts/setup)"),
]

LAKE = "catalog:team"
JAR = os.environ.get("BACKSTORY_ICEBERG_JAR", "")
SPARK_JARS = sorted((ROOT / ".venv" / "spark" / "bucket").glob("*.jar"))
#: Questions whose answers are the same for a lake in a directory.
QUESTIONS = (
    "SELECT run, command FROM runs ORDER BY ALL",
    "SELECT run, path, digest FROM files ORDER BY ALL",
    "SELECT run, how, flow, certainty, started_ns FROM edges ORDER BY ALL",
    """SELECT flow, how, count(*) FROM lineage((SELECT list(file) FROM files
      WHERE path LIKE '%/last'), 'back', NULL) GROUP BY ALL ORDER BY ALL""",
)


class Bucket(NamedTuple):
    """A server of buckets, and a catalog whose tables lie there."""

    endpoint: str
    key: str
    secret: str
    home: Path

    def configure(self, secret: str) -> None:
        """Writes the configuration of PyIceberg."""
        self.home.mkdir(exist_ok=True)
        (self.home / ".pyiceberg.yaml").write_text(
            f"""catalog:
  team:
    type: sql
    uri: sqlite:///{self.home}/catalog.sqlite?timeout=60
    warehouse: s3://team/lake
    s3.endpoint: {self.endpoint}
    s3.region: us-east-1
    s3.access-key-id: {self.key}
    s3.secret-access-key: {secret}
"""
        )

    def lake(self, *words: str, status: int = 0) -> str:
        """Runs `backstory-lake`, and returns what it prints."""
        path = ":".join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYICEBERG_HOME": str(self.home), "PYTHONPATH": path}
        ended = subprocess.run(
            [sys.executable, "-m", "backstory_lake.cli", *words],
            capture_output=True,
            env=environment,
            text=True,
            check=False,
        )
        assert ended.returncode == status, ended.stderr
        assert self.secret not in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stdout + ended.stderr

    def lake_of_spark(self, *words: str) -> str:
        """Runs `backstory-lake` with Spark, which has the same key."""
        settings = {
            "spark.driver.extraClassPath": ":".join(map(str, SPARK_JARS)),
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.codegen.wholeStage": "false",
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": self.key,
            "spark.hadoop.fs.s3a.secret.key": self.secret,
        }
        lines = (f"{name} {value}\n" for name, value in settings.items())
        (self.home / "spark-defaults.conf").write_text("".join(lines))
        os.environ["SPARK_CONF_DIR"] = str(self.home)
        try:
            return self.lake(*words, "--spark", "local[2]", "--jar", JAR)
        finally:
            del os.environ["SPARK_CONF_DIR"]

    def ship(self, machine: Machine, *words: str) -> str:
        """Ships a store."""
        return self.lake("ship", "--store", str(machine.store), "--to", LAKE, *words)

    def stored(self, to: Path) -> Path:
        """A copy of all objects."""
        to.mkdir()
        fs.copy_files("team/lake", str(to), source_filesystem=self._system())
        return to

    def put(self, name: str, content: bytes) -> None:
        """Replaces an object."""
        with self._system().open_output_stream(name) as out:
            out.write(content)

    def get(self, name: str) -> bytes:
        """The content of an object."""
        with self._system().open_input_stream(name) as stream:
            return bytes(stream.read())

    def data_file(self, table: str) -> str:
        """The name of a data file of a table."""
        place = fs.FileSelector(f"team/lake/backstory/{table}/data", recursive=True)
        infos = self._system().get_file_info(place)
        return next(info.path for info in infos if info.path.endswith(".parquet"))

    def _system(self) -> Any:
        return fs.S3FileSystem(
            access_key=self.key,
            secret_key=self.secret,
            endpoint_override=self.endpoint,
            region="us-east-1",
        )


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    """A server with an empty bucket."""
    server = subprocess.Popen(
        [str(PYTHON), str(ROOT / "crates" / "cli" / "tests" / "bucket" / "server.py"), "--sdk"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert server.stdout is not None
        port, key, secret = server.stdout.readline().decode().split()
        made = Bucket(f"http://127.0.0.1:{port}", key, secret, tmp_path / "home")
        made.configure(secret)
        yield made
    finally:
        server.kill()
        server.communicate()


def test_a_lake_in_a_bucket_has_the_answers_of_one_in_a_directory_and_no_key(
    machine: Machine, lake: Path, bucket: Bucket, tmp_path: Path
) -> None:
    machine.record("sort in > mid; head -1 mid > out")
    gone = machine.record("cat out out out > last; cp last whistleblower")
    bucket.ship(machine)
    machine.ship(lake)
    for sql, expected in zip(QUESTIONS, answers(lake, *QUESTIONS)):
        assert len(expected) > 1
        printed = command("query", "--lake", str(lake), "--csv", sql).stdout
        assert bucket.lake("query", "--lake", LAKE, "--csv", sql) == printed, sql
    assert "no files but the lake's" in bucket.lake(
        "query", "--lake", LAKE, "SELECT * FROM read_text('s3://team/other')", status=2
    )
    assert "0 runs shipped" in bucket.ship(machine)
    stored = bucket.stored(tmp_path / "before")
    assert has(stored, "whistleblower")
    assert "none has a row" in bucket.lake("forget", "--lake", LAKE, gone)
    bucket.lake("compact", "--lake", LAKE)
    stored = bucket.stored(tmp_path / "after")
    assert not has(stored, "whistleblower")
    assert tables_with(stored, gone) == {"runs"}
    # No table, catalog or journal has the key.
    (bucket.home / ".pyiceberg.yaml").unlink()
    for place in (tmp_path / "before", stored, bucket.home, machine.store / "lakes"):
        assert not has(place, bucket.secret) and not has(place, bucket.key), place


def test_a_wrong_key_is_a_clear_error_and_the_next_shipment_sends_all(
    machine: Machine, bucket: Bucket
) -> None:
    machine.record("sort in > out")
    bucket.configure("wrong")
    ended = bucket.lake("ship", "--store", str(machine.store), "--to", LAKE, status=1)
    assert len(ended.splitlines()) == 1 and "AWS" in ended, ended
    bucket.configure(bucket.secret)
    assert "1 run shipped" in bucket.ship(machine)
    bucket.configure("wrong")
    for words in (["query", "--lake", LAKE, "FROM runs"], ["compact", "--lake", LAKE]):
        ended = bucket.lake(*words, status=1)
        assert len(ended.splitlines()) == 1 and "configuration" in ended, ended


@pytest.mark.parametrize("left", [-9, None])
def test_a_damaged_object_is_named(machine: Machine, bucket: Bucket, left: int | None) -> None:
    machine.record("sort in > out")
    bucket.ship(machine)
    name = bucket.data_file("files")
    content = bucket.get(name)
    if left is None:
        bucket._system().delete_file(name)
    else:
        bucket.put(name, content[:left])
    words = ["query", "--lake", LAKE, "SELECT path FROM files"]
    ended = bucket.lake(*words, status=1)
    assert len(ended.splitlines()) == 1 and name in ended and "restore it" in ended, ended
    bucket.put(name, content)
    assert "/out" in bucket.lake(*words)


@pytest.mark.skipif(not (JAR and SPARK_JARS), reason="needs .venv/spark/bucket (scripts/setup all)")
def test_spark_has_the_links_of_a_lake_in_a_bucket(machine: Machine, bucket: Bucket) -> None:
    machine.record("sort in > mid; head -1 mid > out")
    machine.record("cat out out out > last")
    bucket.ship(machine)
    name = str(machine.directory / "in")
    words = ("lineage", "--lake", LAKE, "--path", name, "--forth", "--json")
    found, expected = (
        # Java's own messages come after the answer.
        sorted(map(json.dumps, json.JSONDecoder().raw_decode(printed)[0]["links"]))
        for printed in (bucket.lake_of_spark(*words), bucket.lake(*words))
    )
    assert found == expected and len(found) > 5
