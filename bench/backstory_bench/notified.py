"""Workloads that only the guard can observe: static programs, the Go tool chain, many processes.

The C program is static, so every open of it is a notification. The figures of a crowd are latencies
of single opens, not means. A receiver that starves a process has a high worst latency, and the
total times of the processes differ widely.
"""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path

from .measure import Cost
from .workload import Workload

PROCESSES = 64
UNPACKED = 2000
MODULE = """package main

import ("fmt"; "os"; "strings"; "sort"; "encoding/json"; "net/http")

func main() {
	words := strings.Fields(strings.Join(os.Args, " ")); sort.Strings(words)
	text, _ := json.Marshal(words); fmt.Println(string(text), http.StatusOK)
}
"""
SCRIPT = (
    "i=0; while [ $i -lt 200 ]; do busybox cat one >two; busybox cp two three; busybox grep -c x three >/dev/null;"
    " busybox mv three four; i=$((i+1)); done"
)


def _program(root: Path) -> None:
    source = resources.files(__package__).joinpath("notified.c").read_text()
    (root / "notified.c").write_text(source)
    subprocess.run(["gcc", "-O2", "-static", "-o", str(root / "notified"), str(root / "notified.c")], check=True)
    (root / "one").write_text("x" * 4096)


def _number(_: Path, cost: Cost) -> str | None:
    try:
        float(cost.output)
    except ValueError:
        return f"printed {cost.output[:80]!r} instead of a number"
    return None if cost.status == 0 else f"exit status {cost.status}"


def _ended(_: Path, cost: Cost) -> str | None:
    return None if cost.status == 0 else f"exit status {cost.status}: {cost.output[-300:].decode(errors='replace')}"


def _nothing(_: Path) -> None:
    pass


def _empty(root: Path) -> None:
    shutil.rmtree(root / "out", ignore_errors=True)
    (root / "out").mkdir()


def _text(root: Path) -> None:
    (root / "one").write_text("x\n" * 100)


def _module(root: Path) -> None:
    (root / "go.mod").write_text("module bench\n\ngo 1.19\n")
    (root / "main.go").write_text(MODULE)


def _clean_module(root: Path) -> None:
    shutil.rmtree(root / "cache", ignore_errors=True)
    (root / "built").unlink(missing_ok=True)


def _crowd(which: int, name: str, what: str) -> Workload:
    arguments = ["crowd", str(PROCESSES), "300"]
    return Workload(
        f"crowd-{name}",
        f"{what} of {PROCESSES} static processes that open at the same time",
        lambda r: [str(r / "notified"), *arguments, str(r / "one"), str(which)],
        _program,
        _nothing,
        _number,
        per_call=True,
    )


GO_BUILD = "GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 GOCACHE=$PWD/cache go build -o built ."

WORKLOADS = (
    Workload(
        "notified-open",
        "100,000 opens of a static program, ns per open and close",
        lambda r: [str(r / "notified"), "loop", "100000", str(r / "one")],
        _program,
        _nothing,
        _number,
        per_call=True,
    ),
    Workload(
        "notified-unpack",
        f"a static program makes {UNPACKED:,} files and sets owner, mode and times, ns per file",
        lambda r: [str(r / "notified"), "unpack", str(UNPACKED), str(r / "out")],
        _program,
        _empty,
        _number,
        per_call=True,
    ),
    _crowd(50, "median", "the median open (ns)"),
    _crowd(99, "99", "the 99th percentile of opens (ns)"),
    _crowd(100, "worst", "the longest open (ns)"),
    _crowd(0, "fairness", "the slowest process's time to the fastest's"),
    Workload(
        "go-build",
        "go build of a program that uses net/http, nothing cached",
        lambda r: ["sh", "-c", GO_BUILD],
        _module,
        _clean_module,
        _ended,
        1.10,
    ),
    Workload(
        "busybox-script",
        "a static shell's script of 800 programs",
        lambda r: ["busybox", "sh", "-c", SCRIPT],
        _text,
        _nothing,
        _ended,
        1.10,
        1.20,
    ),
)

NEEDS = {"go-build": ("go",), "busybox-script": ("busybox",)} | {
    w.name: ("gcc",) for w in WORKLOADS if w.name.startswith(("notified", "crowd"))
}
