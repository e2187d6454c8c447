"""Sources of programs: what each type has in it, and how each can be changed.

Goes in: a random generator and a type of `kinds.SOURCES`. Comes out: the name that stands in the
program, the entries on disk, and for a change the operations. A change of modes or times only is
marked by its name.
"""

from __future__ import annotations

from random import Random

from .program import Entry, Op

WORDS = ["alpha", "beta", "gamma", "delta", "zeta", "kappa"]
BASE = 1577836800  # 2020-01-01
ODD = [
    ".cache/hf/",
    "site-packages/x/",
    "node_modules/y/",
    "target/",
    ".npm/",
    ".ccache/",
    ".local/share/x/",
    ".cargo/",
    ".venv/data/",
    "build/",
    ".config/",
]


def text_lines(rng: Random, few: int = 3, many: int = 6) -> str:
    """Returns some lines of two or three words."""
    return "".join(
        f"{rng.choice(WORDS)} {rng.randint(1, 9)} {rng.choice(WORDS)[:3]}\n" for _ in range(rng.randint(few, many))
    )


def tool_text(rng: Random) -> str:
    """Returns a small program of one's own; it may fail."""
    return rng.choice(
        [
            '#!/bin/sh\nsort "$@"\n',
            '#!/bin/sh\nsort -r "$@"\n',
            '#!/bin/sh\nhead -n 2 "$@"\n',
            '#!/bin/sh\ngrep -c a "$@"\nexit 3\n',
            '#!/bin/sh\ncat "$@"; test -s "$1"\n',
            "#!/bin/sh\ntr a-z A-Z < $1\nexit 1\n",
        ]
    )


def make_source(rng: Random, kind: str, number: int) -> tuple[str, list[Entry]]:
    """Returns the name for the program, and the entries."""
    n = f"{kind[0]}{number}"
    when = BASE + rng.randint(0, 900) * 86400
    w = rng.choice(WORDS[:3])
    one = {
        "lines": lambda: text_lines(rng),
        "num": lambda: f"{rng.randint(1, 4)}\n",
        "word": lambda: w + "\n",
        "flag": lambda: rng.choice(["yes\n", "no\n"]),
        "code": lambda: f"V={w}\nW={rng.randint(1, 4)}\n",
        "list": lambda: "".join(f"{rng.randint(1, 4)}\n" for _ in range(rng.randint(2, 3))),
        "mode": lambda: rng.choice(["644\n", "755\n", "600\n"]),
        "json": lambda: f'{{"a": "{w}", "key": "{rng.choice(WORDS)}"}}\n',
        "header": lambda: f"#define N {rng.randint(1, 9)}\n",
        "config": lambda: f"beta=x\nalpha={rng.randint(1, 9)}\nz {w}\n",
        "opt": lambda: text_lines(rng),
        "big": lambda: "".join(f"row {i} {rng.randint(0, 9)}\n" for i in range(12000)),
    }
    if kind in one:
        mode = rng.choice([0o644, 0o755, 0o600]) if kind == "mode" else 0o644
        path = f"@opt/{n}" if kind == "opt" else n
        return n, [Entry(path, "file", one[kind](), mode, when)]
    if kind == "huge":
        return n, [Entry(n, "seq", f"{rng.randint(1, 4)}\n", 0o644, when)]
    if kind == "odd":
        path = rng.choice(ODD) + n
        return path, [Entry(path, "file", text_lines(rng), 0o644, when)]
    if kind == "names":
        files = [f"{n}.a", f"{n}.b", f"{n}.c"]
        return n, [
            Entry(n, "file", f"{files[0]}\n{files[1]}\n", 0o644, when),
            *[Entry(f, "file", text_lines(rng), 0o644, when) for f in files],
        ]
    if kind == "dir":
        return n, [Entry(f"{n}/f{i}", "file", text_lines(rng, 1, 3), 0o644, when) for i in (1, 2, 3)]
    if kind == "dirlink":
        return n, [Entry(f"{n}.{v}/f{i}", "file", text_lines(rng, 1, 3), 0o644, when) for v in "ab" for i in (1, 2)] + [
            Entry(n, "link", f"{n}.a")
        ]
    if kind == "link":
        return n, [Entry(f"{n}.{v}", "file", text_lines(rng), 0o644, when) for v in "ab"] + [Entry(n, "link", f"{n}.a")]
    if kind == "maybe":
        return n, [Entry(n, "file", text_lines(rng), 0o644, when)] if rng.random() < 0.4 else []
    if kind == "tool":
        make = Entry(n + ".mk", "file", "$(DST): $(SRC)\n\tsort -r $< > $@\n", 0o644, when)
        return n, [Entry(n, "file", tool_text(rng), 0o755, when), make]
    if kind == "pytool":
        text = rng.choice(
            [
                "import sys\nopen(sys.argv[2], 'w').write(open(sys.argv[1]).read().upper())\n",
                "import sys, json\njson.dump(open(sys.argv[1]).readlines(), open(sys.argv[2], 'w'))\n",
            ]
        )
        return n + ".py", [Entry(n + ".py", "file", text, 0o644, when)]
    if kind == "module":
        return n, [Entry(n + ".py", "file", f"V = {rng.randint(1, 9)}\n", 0o644, when)]
    if kind == "db":
        return n, [Entry(n, "sqlite", "".join(f"{k}={rng.choice(WORDS)}\n" for k in (1, 2, 3, 4)), 0o644, when)]
    if kind == "tar":
        return n, [Entry(n, "tar", "".join(f"f{k}={rng.choice(WORDS)}\n" for k in (1, 2)), 0o644, when)]
    if kind == "pathdirs":
        return n, [
            Entry(n + "a", "dir", "", 0o755),
            Entry(n + "b/mytool", "file", '#!/bin/sh\nsort "$@"\n', 0o755, when),
        ]
    raise ValueError(kind)


def other_text(rng: Random, kind: str, number: int, old: str) -> str:
    """Returns another content of the same type."""
    for _ in range(20):
        entries = make_source(rng, kind, number)[1]
        if entries and entries[0].data != old:
            return entries[0].data
    return old + "more\n"


def changed_lines(rng: Random, old: str) -> str:
    """Returns an edit of some lines."""
    lines = old.splitlines(keepends=True)
    how = rng.randrange(6)
    if how == 0 or not lines:
        return old + f"{rng.choice(WORDS)} {rng.randint(1, 9)} new\n"
    if how == 1:
        return "".join(lines[1:])
    if how == 2:
        return "".join(reversed(lines)) if lines[::-1] != lines else old + "x\n"
    if how == 3:
        at = rng.randrange(len(lines))
        lines[at] = f"{rng.choice(WORDS)} {rng.randint(1, 9)} changed\n"
        return "".join(lines)
    if how == 4:
        at = rng.randrange(len(old) - 1)
        c = "q" if old[at] != "q" else "r"
        return old[:at] + c + old[at + 1 :] if old[at] != "\n" else "q" + old[1:]
    return "" if rng.random() < 0.4 else text_lines(rng)


def write_op(rng: Random) -> str:
    """Returns a way to write a new content."""
    return rng.choices(["write", "replace", "keep-mtime", "mv"], [5, 4, 1, 1])[0]


def change_source(rng: Random, kind: str, number: int, name: str, entries: list[Entry]) -> list[Op]:
    """Returns the operations of one change of a source.

    The table in the code lists the changes of each type.
    """
    path = name if kind != "opt" else f"@opt/{name}"
    first = entries[0] if entries else None
    if first and rng.random() < 0.06 and first.kind == "file":
        return [Op("touch", first.path)] if rng.random() < 0.7 else [Op("same", first.path, first.data)]
    if kind in ("dir", "dirlink", "pathdirs") and first:
        return change_dir(rng, kind, name, entries)
    if kind == "link" or (kind == "names" and rng.random() < 0.5):
        if kind == "link" and rng.random() < 0.5:
            return [Op("link", name, f"{name}.b")]
        target = rng.choice([e for e in entries if e.kind == "file" and e.path != name])
        return [Op(write_op(rng), target.path, changed_lines(rng, target.data))]
    if kind == "names":
        return [Op(write_op(rng), name, f"{name}.{rng.choice('bc')}\n{name}.a\n")]
    if kind == "maybe":
        return [Op("delete", name)] if entries and rng.random() < 0.5 else [Op("write", name, text_lines(rng))]
    if kind in ("mode", "tool") and rng.random() < 0.5 and first:
        return [Op("chmod", first.path, oct(0o755 if first.mode != 0o755 else 0o644)[2:])]
    assert first
    if kind == "huge":
        return [Op("seq", path, f"{1 + int(first.data) % 4}\n")]
    if kind in ("db", "tar"):
        rows = first.data.splitlines(keepends=True)
        rows[rng.randrange(2)] = (
            f"{'f' if kind == 'tar' else ''}{9 if rng.random() < 0.3 else 1}={rng.choice(WORDS)}x\n"
        )
        keys = {r.split("=")[0]: r for r in rows}
        return [Op("sqlite" if kind == "db" else "tar", path, "".join(keys.values()))]
    if kind in ("lines", "odd", "opt", "big"):
        if rng.random() < 0.06:
            return [Op("delete", path)]
        if kind == "big":
            return [Op(write_op(rng), path, first.data[:-2] + rng.choice("xyz") + "\n")]
        return [Op(write_op(rng), first.path, changed_lines(rng, first.data))]
    return [Op(write_op(rng), first.path, other_text(rng, kind, number, first.data))]


def change_dir(rng: Random, kind: str, name: str, entries: list[Entry]) -> list[Op]:
    """Returns a change of a directory or of a link to one."""
    if kind == "pathdirs":
        if rng.random() < 0.7:
            return [
                Op("write", f"{name}a/mytool", '#!/bin/sh\ncat "$@"; echo first\n'),
                Op("chmod", f"{name}a/mytool", "755"),
            ]
        return [Op("write", f"{name}b/mytool", '#!/bin/sh\nsort -r "$@"; echo second\n')]
    if kind == "dirlink":
        if rng.random() < 0.5:
            return [Op("link", name, f"{name}.b")]
        return [Op(write_op(rng), f"{name}.a/f1", changed_lines(rng, entries[0].data))]
    how = rng.randrange(6)
    member = rng.choice(entries)
    if how == 0:
        return [Op("write", f"{name}/{rng.choice(['f0', 'f4', 'a', 'n.zz'])}", text_lines(rng, 1, 2))]
    if how == 1:
        return [Op("delete", member.path)]
    if how == 2:
        return [Op("rename", member.path, f"{name}/f7")]
    if how == 3:
        return [Op("swapdir", name, text_lines(rng, 1, 2))]
    return [Op(write_op(rng), member.path, changed_lines(rng, member.data))]
