"""Asks the program `backstory` for the rows of a store.

The views of `backstory query` are the only description of a store that this package knows. Rows
come as comma-separated values, which Arrow reads, a table at a time. Texts that may be empty, and
names that are not UTF-8, come as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv

from .errors import LakeError

#: Runs in one condition: a command line has a longest argument of 128 KiB.
MOST_RUNS = 2000


class Program:
    """The program, and the store that it is asked about."""

    def __init__(self, store: str | None) -> None:
        self.store = store
        named = os.environ.get("BACKSTORY_PROGRAM")
        self._path = shutil.which(named or "backstory")
        if self._path is None and named:
            raise LakeError(
                f"{named}, which BACKSTORY_PROGRAM names, cannot be executed: install backstory"
            )
        if self._path is None:
            raise LakeError("the program backstory is not on the path: install backstory")

    def schema(self) -> dict[str, list[str]]:
        """The columns of each view, with the hidden ones."""
        columns: dict[str, list[str]] = {}
        for one in self.columns():
            columns.setdefault(one["table"], []).append(one["column"])
        return columns

    def columns(self) -> list[dict[str, Any]]:
        """The columns of all views, with what they mean."""
        columns: list[dict[str, Any]] = json.loads(self._output(["query", "--schema", "--json"]))
        return columns

    def wait(self) -> None:
        """Waits until the contents of the last runs are stored, and their digests are known."""
        self._output(["index", "--wait"] + (["--store", self.store] if self.store else []))

    def objects(self, sql: str) -> list[dict[str, Any]]:
        """The rows of an answer as objects."""
        rows: list[dict[str, Any]] = json.loads(self._output([*self._query(), "--json", sql]))
        return rows

    def table(self, sql: str, schema: pa.Schema) -> pa.Table:
        """The rows of an answer as a table. An empty text is NULL."""
        command = [*self._command(), *self._query(), "--csv", sql]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
            assert asked.stdout is not None and asked.stderr is not None
            rows = asked.stdout.read()
            message = asked.stderr.read()
        if asked.returncode != 0:
            raise self._failure(message)
        return pv.read_csv(
            pa.BufferReader(rows),
            parse_options=pv.ParseOptions(newlines_in_values=True),
            convert_options=pv.ConvertOptions(
                column_types=schema,
                null_values=[""],
                strings_can_be_null=True,
                true_values=["1"],
                false_values=["0"],
            ),
        )

    def _query(self) -> list[str]:
        return ["query", "--timeout", "0"] + (["--store", self.store] if self.store else [])

    def _command(self) -> list[str]:
        assert self._path is not None
        return [self._path]

    def _output(self, words: Sequence[str]) -> bytes:
        asked = subprocess.run([*self._command(), *words], capture_output=True)
        if asked.returncode != 0:
            raise self._failure(asked.stderr)
        return asked.stdout

    @staticmethod
    def _failure(message: bytes) -> LakeError:
        return LakeError(message.decode(errors="replace").strip() or "backstory query failed")
