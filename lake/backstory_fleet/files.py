"""The identities, paths and contents of a fleet's file versions.

A made version has an identity that no other run makes. A file of the system has the content of its
container layer. An input belongs to its project, or is a file from a shelf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .fleet import BEGIN, DAY, SHIFT
from .identities import digests, mixed, shares, tokens
from .shelves import FILE
from .templates import INPUT, MADE, SYSTEM, Templates

if TYPE_CHECKING:
    from .rows import Block, Gathered

Array = np.ndarray[Any, Any]

#: Days for which a project's files stay the same, and groups of machines with the same projects.
PROJECT_DAYS, GROUPS = 5, 16
HOUR = 3600 * 10**9
#: The projects of all machines are below this directory.
INSIDE = "/home"
#: Characters of a temporary name that differ between runs, as in /tmp/cc8JsaNs.s.
TEMPORARY, TOKEN = "/tmp/", 6
#: A shorter content joins no runs.
LEAST = 64
DEVICE = 65024


def layer_moment(version: Any, days: int) -> Any:
    """When a version of a layer came to the machines: two hours after its build began."""
    return BEGIN + version * days * DAY - SHIFT + 2 * HOUR


class Names:
    """Numbers for the paths, inodes and digests of templates, and parts of the paths."""

    def __init__(self, templates: Templates) -> None:
        files = templates.rows["files"].table
        paths = files["path"].fill_null("").to_pylist()
        self.path = _numbered(paths)
        self.digest = _numbered(files["digest"].fill_null("").to_pylist())
        # Two versions of one file have one inode, and the names of a file, too.
        texts = zip(
            *(files[name].to_pylist() for name in ("device", "inode")), self._runs(templates)
        )
        self.inode = _numbered([str(one) for one in texts])
        self.is_temporary = np.array([one.startswith(TEMPORARY) for one in paths])
        self.is_temporary &= (templates.inside == 0) & (templates.classes == MADE)
        cut = np.where(self.is_temporary, len(TEMPORARY) + TOKEN, templates.inside)
        self.rest = pa.array([path[at:] for path, at in zip(paths, cut.tolist())])

    @staticmethod
    def _runs(templates: Templates) -> list[str]:
        made = templates.classes == MADE
        runs = templates.rows["files"].table["run"].to_pylist()
        return [run if own else "" for run, own in zip(runs, made.tolist())]


def _numbered(texts: list[str]) -> Array:
    order: dict[str, int] = {}
    return np.array([order.setdefault(text, len(order)) for text in texts])


class Versions:
    """The columns of `files` that a block does not copy from templates."""

    def __init__(self, block: Block, found: Gathered, shift: Array) -> None:
        self._block, self._found = block, found
        templates, jobs, row = block.templates, block.jobs, found.row
        self._files = templates.rows["files"]
        self._names: Names = block.patterns.names
        self._seed = block.fleet.parameters.seed
        self._class = templates.classes[row]
        self._machine, self._project = jobs.machine[found.job], jobs.project[found.job]
        self._start, self._number = jobs.start[found.job], jobs.number[found.job]
        self._copy = np.where(self._files.repeats[row], found.turn, 0)
        self._file = np.zeros(len(row), FILE)
        for name, source in (("size", "size"), ("modified", "modified_ns"), ("born", "born_ns")):
            self._file[name] = self._files.numbers(source)[row]
        self._file["changed"] = self._files.numbers("changed_ns")[row]
        for name in ("modified", "changed", "born"):
            self._file[name] += shift
        self._file["row"], self._file["copy"] = row, self._copy
        self._file["owner"], self._file["project"] = self._machine, self._project
        self._file["number"], self._file["device"] = self._number, DEVICE

    def columns(self) -> dict[str, pa.Array]:
        """The columns."""
        self._make()
        self._install()
        self._provide()
        self._shelve()
        file, row = self._file, self._found.row
        known = self._files.known("modified_ns")[row]
        columns = {
            name: pa.array(file[source], mask=~known)
            for name, source in (
                ("modified_ns", "modified"),
                ("changed_ns", "changed"),
                ("born_ns", "born"),
                ("device", "device"),
                ("inode", "inode"),
            )
        }
        has_size = self._files.known("size")[row]
        columns["size"] = pa.array(file["size"], mask=~has_size)
        columns["digest"] = digests(file["content"], self._files.known("digest")[row])
        columns["path"] = self._paths()
        return columns

    def _inode(self, *keys: Any) -> Array:
        return np.asarray((mixed(self._seed, *keys) >> np.uint64(24)).astype(np.int64))

    def _make(self) -> None:
        given, row = self._block.fleet.parameters, self._found.row
        inode, digest = self._names.inode[row], self._names.digest[row]
        self._file["inode"] = self._inode(41, self._number, self._copy, inode)
        repeats = shares(self._seed, 42, self._number) < given.reproducible
        scope = np.where(repeats, self._machine % GROUPS * given.projects + self._project, -1)
        number = np.where(repeats, 0, self._number)
        self._file["content"] = mixed(self._seed, 43, scope, number, self._copy, digest)

    def _install(self) -> None:
        """Files of the system are those of a layer."""
        chosen = self._class == SYSTEM
        fleet, row = self._block.fleet, self._found.row[chosen]
        machine, path = self._machine[chosen], self._names.path[row]
        version = np.maximum(fleet.versions(self._start[chosen]), 0)
        layer = fleet.layer_of(path, machine)
        moment = layer_moment(version, fleet.parameters.layer_days)
        found = self._file[chosen]
        found["content"] = fleet.layer_content(layer, version, path, self._names.digest[row])
        found["inode"] = self._inode(44, machine, layer, version, self._names.inode[row])
        found["modified"] = moment + path * 1000
        found["changed"] = found["born"] = moment + HOUR + machine
        self._file[chosen] = found

    def _provide(self) -> None:
        """Inputs are files of the project, or from a shelf."""
        chosen = np.flatnonzero(self._class == INPUT)
        fleet, row = self._block.fleet, self._found.row[chosen]
        machine, project = self._machine[chosen], self._project[chosen]
        path, number = self._names.path[row], self._number[chosen]
        epoch = self._start[chosen] // (PROJECT_DAYS * DAY)
        found = self._file[chosen]
        scope = machine % GROUPS * fleet.parameters.projects + project
        found["content"] = mixed(self._seed, 45, scope, epoch, self._names.digest[row])
        found["inode"] = self._inode(46, machine, project, self._names.inode[row])
        found["modified"] = found["changed"] = epoch * PROJECT_DAYS * DAY + path * 1000
        found["born"] = found["modified"]
        is_file = pc.equal(self._files.table["kind"].take(pa.array(row)), "file").to_numpy()
        taken = is_file & (shares(self._seed, 47, number, path) < fleet.templates.upstream)
        copied = taken & (shares(self._seed, 48, number, path) < fleet.parameters.copied)
        other, is_there = self._block.shelves.take_common(number, path)
        copied &= is_there
        own, has = self._block.shelves.take(machine, number, path)
        taken &= ~copied & has
        found[taken] = own[taken]
        other = other[copied]
        # The copy is another file with the same content.
        other["inode"] = self._inode(49, machine[copied], other["content"])
        moment = BEGIN + self._block.jobs.shift * SHIFT - HOUR
        other["modified"] = np.maximum(other["modified"], moment)
        other["changed"] = other["born"] = other["modified"]
        other["project"], other["owner"] = project[copied], machine[copied]
        found[copied] = other
        self._file[chosen] = found

    def _shelve(self) -> None:
        row = self._found.row
        table = self._files.table
        fit = pc.and_(pc.equal(table["kind"], "file"), pc.greater_equal(table["size"], LEAST))
        fit = pc.and_(pc.and_(fit, table["last"]), pc.is_valid(table["digest"])).fill_null(False)
        chosen = (self._class == MADE) & fit.to_numpy()[row] & (self._copy < 2)
        self._block.shelves.put(self._file[chosen])

    def _paths(self) -> pa.Array:
        """A directory or the begin of a temporary name, the rest, and a repetition's number."""
        file, names, templates = self._file, self._names, self._block.templates
        row = file["row"]
        inside, temporary = templates.inside[row] > 0, names.is_temporary[row]
        owners = file["owner"] * self._block.fleet.parameters.projects + file["project"]
        known, at = np.unique(owners[inside], return_inverse=True)
        directories = pa.array(self._block.named(known))
        empty = pa.repeat("", len(row))
        heads = _replaced(empty, inside, directories.take(pa.array(at)))
        keys = (file["number"][temporary], file["copy"][temporary], names.path[row[temporary]])
        made = pc.binary_join_element_wise(TEMPORARY, tokens(50, *keys), "")
        heads = _replaced(heads, temporary, made)
        rest = names.rest.take(pa.array(row))
        again = (templates.classes[row] == MADE) & (file["copy"] > 0) & ~temporary
        ends = pc.binary_join_element_wise(".", pa.array(file["copy"][again]).cast(pa.string()), "")
        tails = _replaced(empty, again, ends)
        joined = pc.binary_join_element_wise(heads, rest, tails, "")
        has_path = self._files.known("path")[self._found.row]
        return pc.if_else(pa.array(has_path), joined, pa.scalar(None, pa.string()))


def _replaced(values: pa.Array, chosen: Array, new: pa.Array) -> pa.Array:
    return pc.replace_with_mask(values, pa.array(chosen), new) if chosen.any() else values
