"""Random programs: one run of up to twelve lines, then one or two changes of sources.

Goes in: a seed. Comes out: a `Case`. The same seed gives the same case on machines with the same
tools.
"""

from __future__ import annotations

import re
from random import Random

from . import kinds, sources
from .kinds.ninja import HEAD as NINJA_HEAD
from .kinds.python import HEAD as PYTHON_HEAD
from .program import Case, Entry, Line, Op, Step

PLACE = re.compile(r"\{(" + "|".join((*kinds.SOURCES, "out", "newvar", "var", "id")) + r")(\d?)\}")


class Files:
    """The sources and results of one program, as its lines ask for them."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.sources: dict[str, tuple[str, int, list[Entry]]] = {}  # name: type, number, entries
        self.outs: list[str] = []
        self.results: list[str] = []  # results of finished lines that later lines can read
        self.vars: list[str] = []
        self.count = 0

    def number(self) -> int:
        """Returns a number that nothing else has."""
        self.count += 1
        return self.count

    def source(self, kind: str, taken: set[str]) -> str:
        """Returns an existing or a new source of a type, none of `taken`."""
        have = [n for n, (k, _, _) in self.sources.items() if k == kind and n not in taken]
        if have and self.rng.random() < 0.45:
            return self.rng.choice(have)
        number = self.number()
        name, entries = sources.make_source(self.rng, kind, number)
        self.sources[name] = (kind, number, entries)
        return name

    def fill(self, row: kinds.Row, sub: str = "") -> Line | None:
        """Returns a line of a kind, or None if it needs a variable and no variable is set."""
        if re.search(r"\{var\d?\}", row.text) and not self.vars:
            return None
        line = Line(row.name, "", flags=list(row.flags))
        chosen: dict[str, str] = {}
        new_vars: list[str] = []
        number = str(self.number())

        def one(match: re.Match[str]) -> str:
            what, key = match.group(1), match.group(0)
            if what == "id":
                return number
            if key in chosen:
                return chosen[key]
            if what == "out":
                name = f"o{len(self.outs) + 1}"
                self.outs.append(name)
                line.writes.append(name)
            elif what == "newvar":
                name = f"v{number}"
                new_vars.append(name)
                line.writes.append("$" + name)
            elif what == "var":
                name = self.rng.choice(self.vars)
                line.reads.append("$" + name)
            elif what == "lines" and self.results and "src" not in row.flags and self.rng.random() < 0.4:
                name = self.rng.choice(self.results)
                line.reads.append(name)
            else:
                name = self.source(what, set(chosen.values()))
                line.reads.append(name)
                if "rmw" in row.flags:
                    line.writes.append(name)
            chosen[key] = name
            return name

        line.text = PLACE.sub(one, row.text)
        self.vars += new_vars
        self.results += [w for w in line.writes if w in self.outs]
        return line


def make_lines(rng: Random, files: Files, lang: str, names: list[str]) -> list[Line]:
    """Returns the lines of a program."""
    rows = kinds.rows_for(lang)
    only = [r for r in rows if r.name in names]
    many = rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12]) if rng.random() < 0.99 else 60
    lines: list[Line] = []
    while len(lines) < many:
        row = rng.choice(only if only and (not lines or rng.random() < 0.3) else rows)
        if ("slow" in row.flags or "rmw" in row.flags) and row not in only and rng.random() < 0.6:
            continue
        line = files.fill(row)
        if line is not None:
            lines.append(line)
    return lines


def finish_make(rng: Random, run: Step) -> None:
    """Adds the rule for all targets, and the options."""
    run.head = head_for_all(run)
    if run.lang == "ninja":
        return
    if rng.random() < 0.3:
        run.argv = ["-j2"]
    if rng.random() < 0.1:
        run.argv.append("-k")


def head_for_all(run: Step) -> str:
    """Returns the head of a makefile or ninja file."""
    outs = [w for line in run.lines for w in line.writes]
    if run.lang == "ninja":
        return NINJA_HEAD + "\nbuild all: phony " + " ".join(outs) + "\ndefault all"
    return ".PHONY: all\nall: " + " ".join(outs)


def make_run(rng: Random, files: Files, names: list[str], number: int = 1) -> Step:
    """Returns a run with a new program."""
    lang = rng.choices(["dash", "bash", "python", "perl", "make", "ninja"], [39, 25, 16, 8, 9, 3])[0]
    if names:
        fits = [
            x
            for x in ("dash", "bash", "python", "perl", "make", "ninja")
            if any(r.name in names for r in kinds.rows_for(x))
        ]
        lang = rng.choice(fits) if fits else lang
    run = Step("run", "file", lang, lines=make_lines(rng, files, lang, names))
    suffix = {"dash": ".sh", "bash": ".sh", "python": ".py", "perl": ".pl", "make": ".make", "ninja": ".ninja"}[lang]
    run.script = f"prog{number}{suffix}"
    if lang in ("make", "ninja"):
        finish_make(rng, run)
        return run
    forms = ["file", "text", "exec", "stdin", "make", "python"]
    run.form = rng.choices(forms, [58, 14, 10, 4, 7, 7])[0]
    if lang == "python":
        run.head = PYTHON_HEAD
    elif lang in ("dash", "bash") and rng.random() < 0.2:
        run.head = rng.choice(["set -e", "set -eu", "set -f"] + ["set -eo pipefail"] * (lang == "bash") * 2)
    return run


def pick_change(rng: Random, files: Files, run: Step) -> list[Op]:
    """Returns the change of one source, or of the program itself."""
    used = [r for line in run.lines for r in line.reads if r in files.sources]
    name = rng.choice(used)
    kind, number, entries = files.sources[name]
    return sources.change_source(rng, kind, number, name, entries)


def program(seed: str, names: list[str]) -> Case:
    """Returns the case of a seed: one run, then changes."""
    rng = Random(seed)
    while True:
        files = Files(rng)
        run = make_run(rng, files, names)
        if any(r in files.sources for line in run.lines for r in line.reads):
            break
    ops = pick_change(rng, files, run)
    if rng.random() < 0.12:
        more = pick_change(rng, files, run)
        ops += [o for o in more if o.path not in {x.path for x in ops}]
    entries = [e for _, _, es in files.sources.values() for e in es]
    return Case(seed, entries, [run, Step("change", ops=ops)])
