"""Utils: eight short-lived programs, a hundred starts a loop. Utils bash: three builtins."""

from __future__ import annotations

from .base import Instance, program, tree

STARTS = 100


def _util(name: str, line: str, need: str, package: str = "coreutils") -> Instance:
    return Instance(
        "Utils",
        name,
        f"{STARTS} x {line}",
        f"i=0; while [ $i -lt {STARTS} ]; do i=$((i+1)); {line} >out.txt; done",
        (program(need, package),),
        lambda root: tree(root, "tree", 30, 200),
        ("out.txt",),
        ("out.txt",) if name != "ps" else (),
    )


def _builtin(name: str, what: str, line: str) -> Instance:
    return Instance(
        "Utils bash",
        name,
        what,
        f"for ((i = 0; i < 20000; i++)); do {line}; done",
        (program("bash"),),
        lambda root: (root / "inner").mkdir(),
        ("out.txt",),
        before="x=0",
        after='echo "$x" >out.txt',
        outputs=("out.txt",),
        shell="bash",
    )


INSTANCES = [
    _util("hello", "hello", "hello", "hello"),
    _util("true", "/bin/true", "true"),
    _util("ls", "ls tree", "ls"),
    _util("echo", "/bin/echo text", "echo"),
    _util("cat", "cat tree/d000/f00001.txt", "cat"),
    _util("wc", "wc tree/d000/f00001.txt", "wc"),
    _util("grep", "grep -c lazy tree/d000/f00002.txt", "grep", "grep"),
    _util("ps", "ps", "ps", "procps"),
    _builtin("cd", "cd to a directory and back", "cd inner; cd .."),
    _builtin("shell-incr", "increment a variable", "((x += 1))"),
    _builtin("shell-echo", "echo, the builtin", "echo text >/dev/null"),
]
