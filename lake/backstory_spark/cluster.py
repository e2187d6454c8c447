"""A cluster of Spark on this machine: a master and some workers, each a process of its own.

It serves tests and measurements. Everything listens on the loopback alone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from backstory_lake.errors import LakeError

from .tables import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds until the master and its workers must have found each other.
START = 60


class Cluster:
    """A running cluster."""

    def __init__(self, workers: int, cores: int, memory: str) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="backstory-spark-")
        port, page = _free_port(), _free_port()
        self.address = f"spark://127.0.0.1:{port}"
        self._page = f"http://127.0.0.1:{page}/json/"
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(port)]
        self._master = self._start("master", [*master, "--webui-port", str(page)])
        self.workers = [
            self._start(f"worker{at}", self._worker(at, cores, memory)) for at in range(workers)
        ]
        self._wait(workers)

    def stop(self) -> None:
        """Ends all processes."""
        for process in [*self.workers, self._master]:
            process.terminate()
        for process in [*self.workers, self._master]:
            process.wait()
        self._scratch.cleanup()

    def kill(self, at: int) -> int:
        """Kills a worker with all that it runs. Returns the signal."""
        worker = self.workers[at]
        # A worker's executor is a process of the worker's group.
        os.killpg(worker.pid, signal.SIGKILL)
        return -worker.wait()

    def alive(self) -> int:
        """The workers that the master knows and that live."""
        try:
            with urlopen(self._page, timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (URLError, OSError):
            return -1

    def _worker(self, at: int, cores: int, memory: str) -> list[str]:
        directory = f"{self._scratch.name}/work{at}"
        words = ["worker.Worker", self.address, "--host", "127.0.0.1", "--webui-port", "0"]
        return [*words, "--cores", str(cores), "--memory", memory, "--work-dir", directory]

    def _start(self, name: str, words: list[str]) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}"]
        with open(f"{self._scratch.name}/{name}.log", "wb") as log:
            return subprocess.Popen(
                [*command, *words[1:]],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, workers: int) -> None:
        end = time.monotonic() + START
        while self.alive() != workers:
            if time.monotonic() > end:
                log = Path(self._scratch.name, "master.log").read_text(errors="replace")
                self.stop()
                raise LakeError(
                    f"the cluster of Spark did not start within {START} s: {log[-800:]}"
                )
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@contextmanager
def cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """A cluster that ends with the context."""
    made = Cluster(workers, cores, memory)
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def session(
    master: str, jar: str, options: Mapping[str, str] | None = None, log: str = "ERROR"
) -> Iterator[SparkSession]:
    """A session of this machine's driver that ends with the context."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        # Each round is a query of its own, whose sizes are known before.
        "spark.sql.adaptive.enabled": "false",
    }
    builder = configured(SparkSession.builder.master(master), jar)
    for name, value in (settings | dict(options or {})).items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel(log)
    try:
        yield made
    finally:
        made.stop()
