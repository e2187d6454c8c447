"""Measures what `backstory shell` adds to the time from Enter to the next prompt.

Two bare shells and a recorded one run side by side, each on a pseudo-terminal of its own. Each
round types `true` into all three, in turns, and compares the times with that of the first bare
shell. The second bare shell is the control: it shows how much the time of the machine and of the
shell itself varies. All have the same start-up file and an environment without the user's.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import backstory_program, progress
from .report import write_rows

FIELDS = ["shell", "round", "bare_ms", "control_ms", "recorded_ms"]

STARTUP = {
    "bash": (".bashrc", "typed=0 PS1='ready $((typed++))>'\n"),
    "zsh": (".zshrc", "typed=0 PS1='ready $((typed++))>'\nsetopt prompt_subst\nunsetopt prompt_sp prompt_cr zle\n"),
    "fish": (
        ".config/fish/config.fish",
        """set -g typed 0
function count_line --on-event fish_postexec; set -g typed (math $typed + 1); end
function fish_prompt; printf 'ready %s>' $typed; end
""",
    ),
}
"""The start-up file of each shell: its name in the home directory, and its text.

The prompt has the number of lines that were typed, because fish draws it more than once.
"""

SETTLED = {"fish": ".local/share/fish/generated_completions"}
"""A directory that the first start of a shell makes.

Without it, fish reads all manual pages in the background. That would compete with the shells for
the processors.
"""

PATIENCE = 30
"""Seconds after which a shell without a prompt counts as hanging."""

PAUSE = 0.02
"""Seconds before a line is typed. A person is slower."""


class Terminal:
    """A shell on a pseudo-terminal."""

    def __init__(self, argv: Sequence[str], home: Path) -> None:
        """Starts the shell and waits for its first prompt."""
        self.name = argv[0]
        self.typed = 0
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "BACKSTORY_STORE": str(home / "store"),
        }
        self.process, self.master = pty.fork()
        if self.process == 0:
            os.chdir(home)
            os.execve(self.name, list(argv), environment)
        self.wait()

    def wait(self) -> None:
        """Reads until the prompt is there."""
        said = b""
        while b"ready %d>" % self.typed not in said:
            if not select.select([self.master], [], [], PATIENCE)[0]:
                raise SystemExit(f"backstory-bench: {self.name} shows no prompt: {said[-300:]!r}")
            try:
                said += os.read(self.master, 4096)
            except OSError as error:
                raise SystemExit(f"backstory-bench: {self.name} ended: {said[-300:]!r}") from error

    def type(self, line: str) -> float:
        """Types a line. Returns the milliseconds until the next prompt."""
        self.typed += 1
        began = time.perf_counter()
        os.write(self.master, line.encode() + b"\n")
        self.wait()
        return (time.perf_counter() - began) * 1e3

    def close(self) -> None:
        """Ends the shell as the end of a terminal does."""
        os.close(self.master)
        end = time.monotonic() + PATIENCE
        while os.waitpid(self.process, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self.process, signal.SIGKILL)
            time.sleep(PAUSE)


def measure(shell: str, rounds: int, backstory: str, base: Path) -> list[dict[str, object]]:
    """Returns a row for each round."""
    home = Path(tempfile.mkdtemp(prefix="bench-prompt-", dir=base))
    terminals: list[Terminal] = []
    try:
        name, text = STARTUP[shell]
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        if shell in SETTLED:
            (home / SETTLED[shell]).mkdir(parents=True)
        program = shutil.which(shell) or shell
        for argv in ([program], [program], [backstory, "shell", "--", program]):
            terminals.append(Terminal(argv, home))
        rows: list[dict[str, object]] = []
        for number in range(rounds):
            times = [0.0] * len(terminals)
            for which in turns(number, len(terminals)):
                time.sleep(PAUSE)
                times[which] = terminals[which].type("true")
            rows.append(dict(zip(FIELDS, [shell, number, *times], strict=True)))
        return rows
    finally:
        for terminal in terminals:
            terminal.close()
        shutil.rmtree(home, ignore_errors=True)


def turns(number: int, count: int) -> list[int]:
    """Returns the order of a round: none is always the first, or always after another one."""
    order = [(number + step) % count for step in range(count)]
    return order[::-1] if number // count % 2 else order


def percentile(values: Sequence[float], part: float) -> float:
    """Returns the smallest value that at least this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of the times in ms, of what recording adds, and of the control."""
    lines = [
        "| Shell | bare, median | recorded, median | added, median | added, 99 % | control, 99 % |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for shell in dict.fromkeys(str(row["shell"]) for row in rows):
        own = [row for row in rows if row["shell"] == shell]
        bare, control, recorded = ([float(str(row[field])) for row in own] for field in FIELDS[2:])
        added = differences(recorded, bare)
        values = [*map(statistics.median, (bare, recorded, added)), percentile(added, 0.99)]
        values.append(percentile(differences(control, bare), 0.99))
        lines.append(f"| {shell} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    return lines


def differences(times: Sequence[float], bare: Sequence[float]) -> list[float]:
    """Returns by how much a time is longer than that of the first bare shell, in each round."""
    return [time - without for time, without in zip(times, bare, strict=True)]


def main_prompt(args: argparse.Namespace) -> int:
    """Runs the command."""
    backstory = backstory_program.needed()
    rows: list[dict[str, object]] = []
    for shell in args.shells.split(","):
        if shell not in STARTUP:
            raise SystemExit(f"backstory-bench: {shell} is none of {', '.join(STARTUP)}")
        if shutil.which(shell) is None:
            print(f"SKIPPED: {shell} is not installed", file=sys.stderr)
            continue
        progress.show(f"{shell}: {args.rounds} rounds")
        rows += measure(shell, args.rounds, backstory, Path(args.workdir))
    progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory)
    print("\n".join(summary(rows)))
    return 0
