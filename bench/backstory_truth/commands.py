"""Sessions of single commands.

The commands are makers that fail or are killed, redirected commands, and programs that read their
input.

Goes in: a random generator. Comes out: a case, as in `sessions.py`, which this module extends.
"""

from __future__ import annotations

import re
import shutil
from random import Random

from . import kinds, sources
from .generate import Files, make_lines, pick_change
from .program import Case, Entry, Line, Op, Step
from .sessions import all_entries, clean, session, small_run

FAILING = {
    "python-exit": [
        "python3",
        "-c",
        "import sys\no = open('o', 'w'); o.write(open('@D').read()[:9]); o.flush()\nif 'yes' not in open('@F').read(): sys.exit(3)\no.write('all')",
    ],
    "python-abort": [
        "python3",
        "-c",
        "import os\no = open('o', 'w'); o.write(open('@D').read()[:9]); o.flush()\nif 'yes' not in open('@F').read(): os.abort()\no.write('all')",
    ],
    "python-raise": [
        "python3",
        "-c",
        "o = open('o', 'w'); o.write(open('@D').read()[:9])\nif 'yes' not in open('@F').read(): raise ValueError\no.write('all')",
    ],
    "perl-die": [
        "perl",
        "-e",
        "open O, '>', 'o'; open D, '@D'; print O scalar <D>; open F, '@F'; <F> =~ /yes/ or die; print O 'all'",
    ],
    "awk-exit": ["awk", '{print > "o"} FILENAME == "@F" && !/yes/ {exit 2}', "@D", "@F", "@D"],
    "timeout": ["sh", "-c", "timeout 0.1 sh -c 'cat @D; grep -q yes @F || sleep 1; echo all' > o"],
    "sh-exit": ["sh", "-c", "exec > o; cat @D; grep -q yes @F || exit 4; echo all"],
}


@session("failing")
def failing(rng: Random) -> Case | None:
    """A maker ends half-way with a failure; then what it needs is mended."""
    files = Files(rng)
    data, flag = files.source("lines", set()), files.source("flag", set())
    for e in files.sources[flag][2]:
        e.data = "no\n"
    name = rng.choice(sorted(FAILING))
    words = [w.replace("@D", data).replace("@F", flag) for w in FAILING[name]]
    run = Step(
        "run", "argv", argv=words, fails=name != "sh-exit", lines=[Line("fails-" + name, "", [data, flag], ["o"])]
    )
    return Case("", all_entries(files), [run, Step("change", ops=[Op(sources.write_op(rng), flag, "yes\n")])])


KILLED = {
    "python": [
        "python3",
        "-c",
        "import time\no = open('o', 'w'); o.write(open('@D').read()[:9]); o.flush(); time.sleep(1); o.write('all')",
    ],
    "sh": ["sh", "-c", "exec > o; cat @D; sleep 1; echo all"],
    "perl": ["perl", "-e", "$| = 1; open O, '>', 'o'; select O; $| = 1; open D, '@D'; print <D>; sleep 1; print 'all'"],
}


@session("killed")
def killed(rng: Random) -> Case | None:
    """A maker is killed half-way."""
    files = Files(rng)
    data = files.source("lines", set())
    name = rng.choice(sorted(KILLED))
    words = [w.replace("@D", data) for w in KILLED[name]]
    run = Step(
        "run", "argv", argv=words, fails=True, signal_after="o", lines=[Line("killed-" + name, "", [data], ["o"])]
    )
    return Case("", all_entries(files), [run])


DIRECT = {
    "cp": (["cp", "@A", "o"], "", ""),
    "sort-o": (["sort", "-o", "o", "@A"], "", ""),
    "sort-stdin": (["sort", "-o", "o"], "@A", ""),
    "sort-stdout": (["sort", "@A"], "", "o"),
    "sort-both": (["sort"], "@A", "o"),
    "cat-two": (["cat", "@A", "@B"], "", "o"),
    "tee": (["tee", "o"], "@A", ""),
    "sh-stdin": (["sh", "-c", 'read x; echo "$x" > o; cat > p'], "@A", ""),
    "sh-both": (["sh", "-c", "head -n 1; cat @B"], "@A", "o"),
    "awk": (["awk", '{print $2 > "o"}', "@A"], "", ""),
    "python": (["python3", "-c", "import sys\nopen('o', 'w').write(sys.stdin.read() + open('@B').read())"], "@A", ""),
    "install": (["install", "-m", "755", "@A", "o"], "", ""),
    "ln": (["ln", "@A", "o"], "", ""),
    "gzip": (["gzip", "-nk", "@A"], "", ""),
    "xargs": (["xargs", "-n", "1", "sh", "-c", "echo $0 >> o"], "@A", ""),
    "env": (["env", "K=1", "cp", "@A", "o"], "", ""),
    "split": (["split", "-l", "2", "@A", "o."], "", ""),
    "diff": (["diff", "@A", "@B"], "", "o"),
}


@session("direct")
def direct(rng: Random) -> Case | None:
    """A command without a script, whose input and output the caller may have redirected."""
    files = Files(rng)
    a, b = files.source("lines", set()), files.source("lines", {"l1"})
    name = rng.choice(sorted(DIRECT))
    words, stdin, stdout = DIRECT[name]

    def put(text: str) -> str:
        return text.replace("@A", a).replace("@B", b)

    run = Step("run", "argv", argv=[put(w) for w in words], stdin=put(stdin), stdout=stdout)
    run.lines = [Line("direct-" + name, "", [a, b] if "@B" in " ".join(words) else [a], ["o", "p", a + ".gz"])]
    name = rng.choice(run.lines[0].reads)
    ops = [Op(sources.write_op(rng), name, sources.changed_lines(rng, files.sources[name][2][0].data))]
    return Case("", all_entries(files), [run, Step("change", ops=ops)])


@session("new-neighbours")
def new_neighbours(rng: Random) -> Case | None:
    """Files that no program asked for appear beside the sources.

    Nothing is outdated, unless a line lists names.
    """
    files = Files(rng)
    run = small_run(rng, files, langs="dash bash python python")
    names = ["notes.md", "fig9.py", "zz.txt", ".hidden", "sub/x"]
    ops = [Op("write", rng.choice(names), "new\n")]
    return Case("", all_entries(files), [run, Step("change", ops=ops)])


@session("stdin-program")
def stdin_program(rng: Random) -> Case | None:
    """A program that reads its input from standard input, which is a file."""
    files = Files(rng)
    data = files.source("lines", set())
    run = Step("run", "file", "dash", stdin=data, lines=make_lines(rng, files, "dash", [])[:2])
    if any("rmw" in line.flags for line in run.lines):
        return None
    text = rng.choice(
        [
            "cat > o",
            'read x; echo "$x" > o',
            "head -n 1 > o",
            "while read a b; do echo $b; done > o",
            "sort | uniq -c > o",
        ]
    )
    at = rng.randint(0, len(run.lines))
    run.lines.insert(at, Line("stdin", text, [data], ["o"]))
    if any(
        re.search(r"\bsh\b(?! -c| -ec|\./)|xargs|ssh|node|ed -s|\$\{?TRUTH", line.text)
        for line in run.lines
        if line.kind != "stdin"
    ):
        return None
    ops = [Op(sources.write_op(rng), data, sources.changed_lines(rng, files.sources[data][2][0].data))]
    return Case("", all_entries(files), [run, Step("change", ops=ops)])


@session("overlapping")
def overlapping(rng: Random) -> Case | None:
    """A run waits for what another one makes at the same time."""
    files = Files(rng)
    a = files.source("lines", set())
    wait = "while [ ! -s m ]; do sleep 0.01; done; sleep 0.03; "
    use = rng.choice(
        [
            "sort m > r",
            "cat m > r",
            "head -n $(wc -l < m) m > r",
            "cp m r",
            "if grep -q alpha m; then echo a > r; else echo b > r; fi",
        ]
    )
    one = Step("run", "argv", argv=["sh", "-c", wait + use], background=True, lines=[Line("waits", "", ["m"], ["r"])])
    two = Step("run", "argv", argv=["sh", "-c", f"sort -r {a} > m"], lines=[Line("makes", "", [a], ["m"])])
    ops = [Op(sources.write_op(rng), a, sources.changed_lines(rng, files.sources[a][2][0].data))]
    return Case("", all_entries(files), [one, two, Step("change", ops=ops)])


@session("killed-rerun")
def killed_rerun(rng: Random) -> Case | None:
    """`rerun` is killed half-way, and executed again."""
    files = Files(rng)
    run = small_run(rng, files, most=4)
    if not run.lines or not any(r in files.sources for line in run.lines for r in line.reads):
        return None
    if rng.random() < 0.5 and run.lang in ("dash", "bash"):
        run.lines.insert(rng.randint(0, len(run.lines)), Line("pause", "sleep 0.1"))
    return Case("", all_entries(files), [run, Step("change", ops=pick_change(rng, files, run))], expect=["kill-rerun"])


@session("typed")
def typed(rng: Random) -> Case | None:
    """Lines typed at the prompt of a recorded bash."""
    files = Files(rng)
    rows = [r for r in kinds.rows_for("bash") if clean(r) and not re.search(r"!|trap|exec \d|set -", r.text)]
    run = Step("run", "typed", "bash")
    many = rng.randint(2, 6)
    while len(run.lines) < many:
        line = files.fill(rng.choice(rows))
        if line:
            run.lines.append(line)
    if not any(r in files.sources for line in run.lines for r in line.reads):
        return None
    return Case("", all_entries(files), [run, Step("change", ops=pick_change(rng, files, run))])


GIT = """export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z; git init -q -b main . && git config user.name a && git config user.email a@b
git add @S && git commit -qm one && printf '%s\\n' '@L' > @S && git add @S && git commit -qm two && git tag v2 && git checkout -q -b old HEAD~1"""
GIT_EDITORS = {
    "git-checkout-file": ["git", "checkout", "-q", "v2", "--", "@S"],
    "git-checkout": ["git", "checkout", "-q", "v2"],
    "git-merge": ["git", "merge", "-q", "--ff-only", "main"],
    "git-reset": ["git", "reset", "-q", "--hard", "main"],
    "git-stash": ["git", "switch", "-q", "main"],
}


@session("git")
def git_session(rng: Random) -> Case | None:
    """A source below git is changed by a recorded git command, or by hand with git."""
    if not shutil.which("git"):
        return None
    files = Files(rng)
    run = small_run(rng, files)
    texts = [
        r
        for line in run.lines
        for r in line.reads
        if r in files.sources and files.sources[r][0] in ("lines", "num", "word", "flag", "config")
    ]
    if not texts or any("git" in line.text for line in run.lines):
        return None
    name = rng.choice(texts)
    kind, number, entries = files.sources[name]
    line = sources.other_text(rng, kind, number, entries[0].data).split("\n")[0]
    setup = Entry("", "setup", GIT.replace("@S", name).replace("@L", line))
    how = rng.choice(sorted(GIT_EDITORS))
    words = [w.replace("@S", name) for w in GIT_EDITORS[how]]
    edit = Step("run", "argv", argv=words, edit=True, lines=[Line(how, "", [name], [name])])
    steps = [run, edit]
    if rng.random() < 0.3:
        steps.append(Step("change", ops=[Op("write", name, entries[0].data)]))
    return Case("", [*all_entries(files), setup], steps, git=True)
