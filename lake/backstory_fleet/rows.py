"""The rows of some jobs, as `ship` would have sent them.

A job has the rows of its template. Each further repetition has those that the template's root
process did not make. Keys, moments, paths and identities are new.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backstory_lake.tables import BY_NAME, FORMAT, RUNS

from .files import INSIDE, Names, Versions
from .fleet import BEGIN, DAY, Fleet, Jobs
from .identities import mixed, name_of, uuid_of
from .shelves import Shelves
from .templates import KEYS, MOMENTS, Templates

Array = np.ndarray[Any, Any]

#: ns between two repetitions.
PAUSE = 1_000_000
#: The texts that may name the corpus's directory.
TEXTS = {"processes": ("command", "cwd"), "steps": ("command", "cwd", "inputs", "outputs")}


class Patterns:
    """The rows that rows of templates refer to, found once for all blocks."""

    def __init__(self, templates: Templates) -> None:
        self.templates = templates
        self.length = np.array(
            [run["ended_us"] * 1000 - run["started_ns"] for run in templates.runs]
        )
        self.length += PAUSE
        self.names = Names(templates)
        self.targets = {
            (name, key): self._targets(name, key) for name, keys in KEYS.items() for key in keys
        }
        # For the second and later repetitions.
        self.repeated = {
            name: (np.flatnonzero(rows.repeats), _sums(rows.repeats)[rows.first])
            for name, rows in templates.rows.items()
        }

    def _targets(self, name: str, key: str) -> Array:
        """The row of `processes` or `files` that each row refers to."""
        of, own = self._own(name, key)
        rows, target = self.templates.rows[name], self.templates.rows[of]
        template = np.repeat(np.arange(len(rows.first) - 1), np.diff(rows.first))
        other = np.repeat(np.arange(len(target.first) - 1), np.diff(target.first))
        wide = other << 32 | target.numbers(own)
        found = np.searchsorted(wide, template << 32 | rows.numbers(key))
        return np.asarray(np.minimum(found, len(wide) - 1))

    @staticmethod
    def _own(name: str, key: str) -> tuple[str, str]:
        is_file = key in ("file", "previous") or (name, key) == ("derivations", "origin")
        return ("files", "file") if is_file else ("processes", "process")


class Gathered:
    """Rows of a table, each with its template's row, job and repetition."""

    def __init__(self, patterns: Patterns, jobs: Jobs, name: str) -> None:
        rows = patterns.templates.rows[name]
        job = np.repeat(np.arange(len(jobs)), jobs.repeats)
        turn = _turns(jobs.repeats)
        template = jobs.template[job]
        order, first = patterns.repeated[name]
        again = turn > 0
        begin = np.where(again, first[template], rows.first[template])
        end = np.where(again, first[template + 1], rows.first[template + 1])
        counts = end - begin
        place = np.repeat(begin, counts) + _turns(counts)
        later = np.repeat(again, counts)
        # A place among the repeated rows, or among all.
        safe = np.minimum(place, max(len(order) - 1, 0))
        self.row = np.where(later, order[safe] if len(order) else 0, place)
        self.job = np.repeat(job, counts)
        self.turn = np.repeat(turn, counts)


class Block:
    """The rows of some jobs."""

    def __init__(self, fleet: Fleet, patterns: Patterns, shelves: Shelves, jobs: Jobs) -> None:
        self.fleet, self.patterns, self.shelves, self.jobs = fleet, patterns, shelves, jobs
        self.templates = patterns.templates

    def tables(self) -> list[tuple[str, pa.Table]]:
        """All tables, `runs` at the end."""
        return [*((name, self._table(name)) for name in KEYS), (RUNS.name, self._runs())]

    @cached_property
    def directories(self) -> list[str]:
        """The directory of each job, with a name as long as that of the corpus."""
        projects = self.fleet.parameters.projects
        return self.named(self.jobs.machine * projects + self.jobs.project)

    def named(self, projects: Array) -> list[str]:
        """The directories of projects of machines."""
        length = max(len(self.templates.directory) - len(INSIDE) - 1, 4)
        codes = mixed(3, projects).tolist()
        return [f"{INSIDE}/" + (name_of(code, 12) * length)[:length] for code in codes]

    def shipments(self) -> Array:
        """A number for what a machine sends after a shift."""
        seed = self.fleet.parameters.seed
        return (mixed(seed, 31, self.jobs.machine, self.jobs.shift) >> np.uint64(1)).astype(
            np.int64
        )

    def _table(self, name: str) -> pa.Table:
        of, found = BY_NAME[name], Gathered(self.patterns, self.jobs, name)
        rows = self.templates.rows[name].table
        columns = self._places(found.job)
        columns |= {key: self._keys(name, key, found) for key in KEYS[name]}
        shift = (
            self.jobs.start[found.job]
            + found.turn * self.patterns.length[self.jobs.template[found.job]]
        )
        for moment in MOMENTS:
            if moment in rows.column_names:
                column = rows[moment].combine_chunks()
                columns[moment] = pc.add(column.take(pa.array(found.row)), pa.array(shift))
        for moment in ("started_us", "ended_us"):
            if moment in rows.column_names and name == "steps":
                column = rows[moment].combine_chunks()
                columns[moment] = pc.add(column.take(pa.array(found.row)), pa.array(shift // 1000))
        for text in TEXTS.get(name, ()):
            columns[text] = self._texts(rows[text], found)
        if name == "files":
            columns |= Versions(self, found, shift).columns()
        for field in of.arrow:
            if field.name not in columns:
                columns[field.name] = rows[field.name].combine_chunks().take(pa.array(found.row))
        return pa.table({field.name: columns[field.name] for field in of.arrow}).cast(of.arrow)

    def _places(self, job: Array) -> dict[str, Any]:
        jobs = self.jobs
        ids = pa.array([run_id(number) for number in jobs.number.tolist()])
        return {
            "day": pa.array((jobs.start[job] // DAY).astype(np.int32), pa.int32()).cast(
                pa.date32()
            ),
            "bucket": self.fleet.buckets[jobs.machine[job]],
            "shipment": self.shipments()[job],
            "number": jobs.number[job],
            "run": ids.take(pa.array(job)),
        }

    def _keys(self, name: str, key: str, found: Gathered) -> pa.Array:
        """Keys of the lake for a column of a template's keys."""
        of, _ = Patterns._own(name, key)
        target = self.patterns.targets[name, key][found.row]
        rows, template = self.templates.rows[of], self.jobs.template[found.job]
        again = (found.turn > 0) & rows.repeats[target]
        own = target - rows.first[template]
        later = (found.turn - 1) * self.templates.repeated(of)[template]
        later += self.templates.count(of)[template] + self.templates.places[of][target]
        local = np.where(again, later, own)
        known = self.templates.rows[name].known(key)[found.row]
        return pa.array(self.jobs.number[found.job] << 32 | local, mask=~known)

    def _texts(self, column: pa.ChunkedArray, found: Gathered) -> pa.Array:
        """Texts that name the directories of the jobs."""
        here, texts = self.templates.directory, column.to_pylist()
        return pa.array(
            [
                text if text is None else text.replace(here, self.directories[job])
                for text, job in zip([texts[row] for row in found.row.tolist()], found.job.tolist())
            ],
            pa.string(),
        )

    def _runs(self) -> pa.Table:
        rows = []
        boots = (BEGIN - DAY) * np.ones(len(self.jobs), np.int64)
        shipments = self.shipments().tolist()
        processes = self.templates.count("processes")
        again = self.templates.repeated("processes")
        for at in range(len(self.jobs)):
            jobs, template = self.jobs, int(self.jobs.template[at])
            run = self.templates.runs[template]
            machine, start = int(jobs.machine[at]), int(jobs.start[at])
            turns, owner = int(jobs.repeats[at]), machine % 50
            length = int(self.patterns.length[template]) * turns
            here = self.directories[at]
            rows.append(
                run
                | {
                    "command": (run["command"] or "").replace(self.templates.directory, here),
                    "cwd": (run["cwd"] or "").replace(self.templates.directory, here),
                    "started_ns": start,
                    "ended_us": (start + length) // 1000,
                    "processes": int(processes[template] + again[template] * (turns - 1)),
                    "since_boot_ns": start - int(boots[at]),
                    "files_written": run["files_written"] * turns,
                    "host": self.fleet.hosts[machine],
                    "machine": uuid_of(1, machine),
                    "boot": uuid_of(2, machine),
                    "owner": f"user{owner:02}",
                    "uid": 1000 + owner,
                    "shipped_us": (start + DAY) // 1000,
                    "number": int(jobs.number[at]),
                    "run": run_id(int(jobs.number[at])),
                    "shipment": shipments[at],
                    "bucket": int(self.fleet.buckets[machine]),
                    "day": datetime.fromtimestamp(start // 10**9, UTC).date(),
                    "format": FORMAT,
                    "forgotten": False,
                }
            )
        return pa.Table.from_pylist(rows, RUNS.arrow)


def run_id(number: int) -> str:
    """The id of a run: eight characters."""
    return name_of(number | 1 << 35, 8)


def _turns(counts: Array) -> Array:
    """0, 1, … for each count."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts))


def _sums(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)])
