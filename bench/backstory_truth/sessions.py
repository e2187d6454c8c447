"""Sessions: several runs, changes by hand between and during them, failing and killed makers.

Goes in: a seed. Comes out: a case. Adding a kind is one function with `@session(NAME)`. Programs of
sessions have no lines that rewrite sources; what a recorded editor does to a source is a fact, as
`truth.py` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from . import kinds, sources
from .editors import editor
from .generate import Files, make_run, pick_change
from .program import Case, Entry, Line, Op, Step

KINDS: dict[str, Callable[[Random], Case | None]] = {}
UNCLEAN = re.compile(
    r"mkdir|mkfifo|\bmv\b|\bln\b|link|copytree|rename|replace\(|\.cache|create table|git init|>>|cp -|tar x|split|\.\*|append|\[ -e|ar rc|-d \{out|test -d|fails|Pool|'a'\)"
)


def session(name: str) -> Callable[[Callable[[Random], Case | None]], Callable[[Random], Case | None]]:
    """Registers a kind of session."""

    def add(make: Callable[[Random], Case | None]) -> Callable[[Random], Case | None]:
        KINDS[name] = make
        return make

    return add


def pick(seed: str, names: list[str], part: float) -> Case | None:
    """Returns a session, or None if this seed gives a program."""
    rng = Random("session " + seed)
    chosen = [n for n in KINDS if n in names]
    if (names and not chosen) or (not names and rng.random() > part):
        return None
    for _ in range(50):
        name = rng.choice(chosen or sorted(KINDS))
        case = KINDS[name](rng)
        if case:
            case.seed, case.form = seed, name
            return case
    return None


def clean(row: kinds.Row) -> bool:
    """Returns whether a line does the same when its results exist already."""
    return not UNCLEAN.search(row.text) and not {"rmw", "slow", "fails"} & set(row.flags)


def small_run(rng: Random, files: Files, number: int = 1, langs: str = "dash bash python", most: int = 3) -> Step:
    """Returns a run of few lines that can be executed again over its results."""
    lang = rng.choice(langs.split())
    rows = [r for r in kinds.rows_for(lang) if clean(r)]
    lines: list[Line] = []
    many = rng.randint(1, most)
    while len(lines) < many:
        line = files.fill(rng.choice(rows))
        if line:
            lines.append(line)
    files.vars.clear()
    suffix = {"dash": ".sh", "bash": ".sh", "python": ".py", "perl": ".pl"}[lang]
    head = kinds.python.HEAD if lang == "python" else ""
    return Step("run", "file", lang, head=head, lines=lines, script=f"prog{number}{suffix}")


def all_entries(files: Files) -> list[Entry]:
    """Returns the entries of all sources."""
    return [e for _, _, es in files.sources.values() for e in es]


def used(files: Files, run: Step, types: str = "") -> list[str]:
    """Returns the sources that a run reads, of some types."""
    wanted = types.split()
    return [
        r
        for line in run.lines
        for r in line.reads
        if r in files.sources and (not wanted or files.sources[r][0] in wanted)
    ]


def run_of_text(rng: Random, number: int = 1) -> tuple[Files, Step, str] | None:
    """Returns a run with its files, and a text that it reads."""
    files = Files(rng)
    run = small_run(rng, files, number)
    texts = used(files, run, TEXT)
    return (files, run, rng.choice(texts)) if texts else None


TEXT = "lines num word flag list config odd"


def first_line(rng: Random, files: Files, name: str) -> str:
    """Returns another first line for a source."""
    kind, number, entries = files.sources[name]
    return sources.other_text(rng, kind, number, entries[0].data).split("\n")[0]


@session("two-runs")
def two_runs(rng: Random) -> Case | None:
    """A second program that reads results of the first; then a source is changed."""
    files = Files(rng)
    first = small_run(rng, files, 1)
    second = small_run(rng, files, 2)
    changed = rng.choice([first, first, second])
    if not used(files, changed):
        return None
    return Case("", all_entries(files), [first, second, Step("change", ops=pick_change(rng, files, changed))])


@session("editor")
def edited(rng: Random) -> Case | None:
    """A source is changed by a recorded command after the run."""
    files = Files(rng)
    run = make_run(rng, files, []) if rng.random() < 0.3 else small_run(rng, files)
    if any("rmw" in line.flags for line in run.lines) or not used(files, run, TEXT):
        return None
    name = rng.choice(used(files, run, TEXT))
    edit, more = editor(rng, name, first_line(rng, files, name))
    return Case("", all_entries(files) + more, [run, edit])


@session("editor-then-hand")
def edited_then_hand(rng: Random) -> Case | None:
    """A recorded edit of one source, then another source is changed by hand."""
    files = Files(rng)
    run = small_run(rng, files, most=4)
    names = sorted(set(used(files, run)))
    texts = sorted(set(used(files, run, TEXT)))
    if len(names) < 2 or not texts:
        return None
    name = rng.choice(texts)
    edit, more = editor(rng, name, first_line(rng, files, name))
    other = rng.choice([n for n in names if n != name])
    kind, number, entries = files.sources[other]
    ops = sources.change_source(rng, kind, number, other, entries)
    return Case("", all_entries(files) + more, [run, edit, Step("change", ops=ops)])


@session("maker-then-hand")
def made_then_hand(rng: Random) -> Case | None:
    """A recorded copy over a source; then the copied file or the copy is changed by hand."""
    found = run_of_text(rng)
    if not found:
        return None
    files, run, name = found
    edit, more = editor(
        rng, name, first_line(rng, files, name), rng.choice(["cp", "cat", "install", "dd", "tee", "sort"])
    )
    line = first_line(rng, files, name)
    op = Op(sources.write_op(rng), rng.choice(["new", name]), line + "\nmore\n")
    return Case("", all_entries(files) + more, [run, edit, Step("change", ops=[op])])


@session("made-first")
def made_first(rng: Random) -> Case | None:
    """A source is itself a recorded copy of a template; then it or the template is edited."""
    found = run_of_text(rng, 2)
    if not found:
        return None
    files, run, name = found
    old = files.sources[name][2][0]
    make, _ = editor(rng, name, "x", rng.choice(["cp", "cat", "tee", "install"]))
    entries = [e for e in all_entries(files) if e.path != name] + [Entry("new", "file", old.data, 0o644, old.mtime)]
    line = first_line(rng, files, name)
    rest = old.data.split("\n", 1)[1]
    op = Op(sources.write_op(rng), rng.choice(["new", name]), f"{line}\n{rest}")
    return Case("", entries, [make, run, Step("change", ops=[op])])


@session("repeat")
def repeated(rng: Random) -> Case | None:
    """The same program is recorded again after a change.

    Then another change follows, or the first is taken back.
    """
    files = Files(rng)
    run = small_run(rng, files)
    if not used(files, run):
        return None
    again = Step(**{**run.__dict__, "repeats": True})
    one, two = pick_change(rng, files, run), pick_change(rng, files, run)
    if rng.random() < 0.4:
        two = back(files, one)
    return Case("", all_entries(files), [run, Step("change", ops=one), again, Step("change", ops=two)])


def back(files: Files, ops: list[Op]) -> list[Op]:
    """Returns the operations that put back what plain writes changed."""
    old = {e.path: e for e in all_entries(files)}
    return [Op("write", op.path, old[op.path].data) for op in ops if op.path in old and old[op.path].kind == "file"]


@session("forth-and-back")
def forth_and_back(rng: Random) -> Case | None:
    """A source is changed and put back: all is current."""
    files = Files(rng)
    run = small_run(rng, files)
    texts = used(files, run, TEXT + " code json mode")
    if not texts:
        return None
    old = files.sources[rng.choice(texts)][2][0]
    ops = [Op(sources.write_op(rng), old.path, sources.changed_lines(rng, old.data))]
    return Case(
        "",
        all_entries(files),
        [run, Step("change", ops=ops), Step("change", ops=[Op(rng.choice(["write", "replace"]), old.path, old.data)])],
    )


@session("two-directories")
def two_directories(rng: Random) -> Case | None:
    """The same command in two directories; a source of one of them is changed."""
    files = Files(rng)
    run = small_run(rng, files)
    if not used(files, run) or any(k == "opt" for k, _, _ in files.sources.values()):
        return None
    ops = pick_change(rng, files, run)
    entries = [Entry(f"{d}/{e.path}", e.kind, e.data, e.mode, e.mtime) for d in "ab" for e in all_entries(files)]
    where = rng.choice("ab")
    moved = [Op(o.op, f"{where}/{o.path}", f"{where}/{o.data}" if o.op == "rename" else o.data) for o in ops]
    runs = [Step(**{**run.__dict__, "cwd": d}) for d in "ab"]
    return Case("", entries, [*runs, Step("change", ops=moved)])


@session("append")
def appended(rng: Random) -> Case | None:
    """One run makes a file, a second one appends to it; then a source of either is changed."""
    files = Files(rng)
    a, b = files.source("lines", set()), files.source("lines", {"l1"})
    first = Step("run", "argv", argv=["sh", "-c", f"cat {a} > o"], lines=[Line("make", "", [a], ["o"])])
    how = rng.choice([f"cat {b} >> o", f"tee -a o < {b} > /dev/null", f"sed -i '$r {b}' o", f"sort -o o o {b}"])
    second = Step("run", "argv", argv=["sh", "-c", how], edit=True, lines=[Line("append", "", [b, "o"], ["o"])])
    name = rng.choice([a, b])
    ops = [Op(sources.write_op(rng), name, sources.changed_lines(rng, files.sources[name][2][0].data))]
    third = Step("run", "argv", argv=["sh", "-c", "sort -r o > best"], lines=[Line("sort", "", ["o"], ["best"])])
    return Case(
        "", all_entries(files), [first, second, *([third] if rng.random() < 0.5 else []), Step("change", ops=ops)]
    )


@session("overwritten-between")
def overwritten_between(rng: Random) -> Case | None:
    """A file that a run has read is made anew by another run."""
    files = Files(rng)
    a, b = files.source("lines", set()), files.source("lines", {"l1"})
    make = Step("run", "argv", argv=["sh", "-c", f"sort {a} > m"], lines=[Line("make", "", [a], ["m"])])
    files.sources["m"] = ("lines", 99, [])
    rows = [r for r in kinds.rows_for("dash") if clean(r) and "{lines}" in r.text and "src" not in r.flags]
    for _ in range(99):
        line = files.fill(rng.choice(rows))
        if line and "m" in line.reads:
            break
    else:
        return None
    reader = Step("run", "file", "dash", lines=[line], script="prog2.sh")
    again = Step("run", "argv", argv=["sh", "-c", f"sort -r {b} > m"], lines=[Line("make-again", "", [b], ["m"])])
    return Case("", all_entries(files), [make, reader, again])


@session("undo")
def undone(rng: Random) -> Case | None:
    """An input is overwritten by a recorded copy, and the program runs again.

    Then `undo` brings the input back.
    """
    found = run_of_text(rng)
    if not found:
        return None
    files, run, name = found
    edit, more = editor(
        rng, name, first_line(rng, files, name), rng.choice(["cp", "cat", "sed-i", "perl-pi", "mv-new"])
    )
    again = Step(**{**run.__dict__, "repeats": True})
    steps = [run, edit, again] if rng.random() < 0.6 else [run, edit]
    return Case("", all_entries(files) + more, [*steps, Step("undo", ops=[Op("undo", name)])])


@session("hand-edited-result")
def hand_edited_result(rng: Random) -> Case | None:
    """A result is edited by hand: it is a person's from then on, and an input of later commands."""
    files = Files(rng)
    a = files.source("lines", set())
    first = Step("run", "argv", argv=["sh", "-c", f"sort {a} > m"], lines=[Line("make", "", [a], ["m"])])
    second = Step("run", "argv", argv=["sh", "-c", "tr a-z A-Z < m > r"], lines=[Line("read", "", ["m"], ["r"])])
    steps = [first, second, Step("change", ops=[Op(rng.choice(["append", "write"]), "m", "mine\n")])]
    if rng.random() < 0.4:
        steps.append(Step("change", ops=[Op("write", a, "z\ny\n")]))
    return Case("", all_entries(files), steps)


@session("result-gone")
def result_gone(rng: Random) -> Case | None:
    """A result is deleted or renamed by hand."""
    files = Files(rng)
    run = small_run(rng, files)
    if any(re.search(r"xargs-|for-outs|loop", line.kind) for line in run.lines):
        return None
    results = [w for line in run.lines for w in line.writes if not w.startswith("$")]
    if not results:
        return None
    out = rng.choice(results)
    op = Op("delete", out) if rng.random() < 0.6 else Op("rename", out, out + ".kept")
    steps = [run, Step("change", ops=[op])]
    if used(files, run) and rng.random() < 0.3:
        steps.append(Step("change", ops=pick_change(rng, files, run)))
    return Case("", all_entries(files), steps)


@session("during")
def changed_during(rng: Random) -> Case | None:
    """A source is changed while the run goes on, after or before its use."""
    files = Files(rng)
    lang = rng.choice(["dash", "dash", "bash", "python"])
    rows = [r for r in kinds.rows_for(lang) if clean(r)]
    lines: list[Line] = []
    while len(lines) < 2:
        line = files.fill(rng.choice(rows))
        if line and line.writes and not line.writes[0].startswith("$"):
            lines.append(line)
    files.vars.clear()
    pause = "threading.Event().wait(0.15)" if lang == "python" else "sleep 0.15"
    lines.insert(1, Line("pause", pause))
    head = kinds.python.HEAD if lang == "python" else ""
    run = Step("run", "file", lang, head=head, lines=lines, script="prog.py" if lang == "python" else "prog.sh")
    reads = [r for line in lines for r in line.reads if r in files.sources]
    if not reads:
        return None
    kind, number, entries = files.sources[name := rng.choice(reads)]
    ops = sources.change_source(rng, kind, number, name, entries)
    return Case("", all_entries(files), [Step("during", ops=ops, when=lines[0].writes[0]), run])
