"""A case as a script for bash that a person can read and execute.

Goes in: a case and a finding. Comes out: the text of a script. It makes the sources, records,
changes and asks.
"""

from __future__ import annotations

import os
import shlex

from .program import Case, Entry, Op, Step, command, script_entries
from .verdict import Finding

HEAD = """#!/bin/bash
# {title}
B=${{BACKSTORY:-backstory}}; d=$(mktemp -d); mkdir $d/w $d/opt; cd $d/w; export BACKSTORY_STORE=$d/store TRUTH_OPT=$d/opt LC_ALL=C PYTHONDONTWRITEBYTECODE=1{callers}
"""


def quote(text: str) -> str:
    """Returns a word of bash."""
    if "\n" in text or not text.isprintable():
        return "$'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"
    return shlex.quote(text)


def path_word(path: str) -> str:
    """Returns a path as a word."""
    return f'"$TRUTH_OPT"/{path[5:]}' if path.startswith("@opt/") else shlex.quote(path)


def entry_lines(entry: Entry) -> list[str]:
    """Returns commands that make an entry."""
    word, data = path_word(entry.path), entry.data
    lines = [f"mkdir -p {path_word(entry.path.rsplit('/', 1)[0])}"] if "/" in entry.path.removeprefix("@opt/") else []
    if entry.kind == "dir":
        return [f"mkdir -p {word}"]
    if entry.kind == "link":
        return [*lines, f"ln -s {quote(data)} {word}"]
    if entry.kind == "sqlite":
        return [*lines, f"sqlite3 {word} {quote(sql(data))}"]
    if entry.kind == "setup":
        return [f"(set -e; {data})"]
    if entry.kind == "seq":
        return [f"{seq_text(data)} > {word}", f"touch -d @{entry.mtime} {word}"]
    if entry.kind == "tar":
        return [*lines, tar(word, data)]
    if len(data) > 2000:
        lines.append(f"seq -f 'row %.0f 7' 0 11999 > {word}")
    elif "\n" in data[:-1] and "E_" not in data and data.endswith("\n"):
        lines.append(f"cat > {word} <<'E_'\n{data}E_")
    else:
        lines.append(f"printf %s {quote(data)} > {word}")
    if entry.mode != 0o644:
        lines.append(f"chmod {entry.mode:o} {word}")
    return [*lines, f"touch -d @{entry.mtime} {word}"]


def seq_text(end: str) -> str:
    """Returns a command that prints more than a megabyte."""
    return f"(seq -f 'a row of some length, number %.0f' 0 39999; printf %s {quote(end)})"


def sql(rows: str) -> str:
    """Returns statements that make the table `t` have these rows."""
    pairs = [r.split("=") for r in rows.splitlines()]
    values = " ".join(f"insert into t values({k},'{v}');" for k, v in pairs)
    return "create table if not exists t(k integer, v text); delete from t; " + values


def tar(word: str, members: str) -> str:
    """Returns a command that writes an archive."""
    pairs = [r.split("=") for r in members.splitlines()]
    make = "; ".join(f"echo {v} > $t/{k}" for k, v in pairs)
    return f"t=$(mktemp -d); {make}; tar cf {word} -C $t {' '.join(k for k, _ in pairs)}"


def op_line(op: Op) -> str:
    """Returns a command that does a change."""
    word, data = path_word(op.path), quote(op.data)
    parent = (
        f"mkdir -p {path_word(op.path.rsplit('/', 1)[0])}; "
        if op.op == "write" and "/" in op.path.removeprefix("@opt/")
        else ""
    )
    big = len(op.data) > 2000
    text = "{ seq -f 'row %.0f 7' 0 11998; echo row 11999 x; }" if big else f"printf %s {data}"
    return {
        "write": f"{parent}{text} > {word}",
        "replace": f"{text} > {word}.new~; chmod --reference={word} {word}.new~; mv {word}.new~ {word}",
        "mv": f"{text} > {word}.new~; chmod --reference={word} {word}.new~; mv {word}.new~ {word}",
        "same": f"cp -p {word} {word}.new~; mv {word}.new~ {word}",
        "keep-mtime": f"t=$(stat -c %Y {word}); {text} > {word}; touch -d @$t {word}",
        "append": f"{text} >> {word}",
        "delete": f"rm -f {word}",
        "chmod": f"chmod {op.data} {word}",
        "touch": f"touch {word}",
        "link": f"ln -sfn {data} {word}",
        "rename": f"mv {word} {path_word(op.data)}",
        "mkdir": f"mkdir {word}",
        "sqlite": f"sqlite3 {word} {quote(sql(op.data)) if op.op == 'sqlite' else ''}",
        "seq": f"{seq_text(op.data)} > {word}",
        "tar": tar(word, op.data) if op.op == "tar" else "",
        "swapdir": f"mv {word} {word}.old~; cp -r {word}.old~ {word}; printf %s {data} > {word}/f1; rm -r {word}.old~",
    }[op.op]


def step_lines(step: Step) -> list[str]:
    """Returns commands for one step."""
    if step.do == "run" and step.form == "typed":
        text = quote("".join(line.text + "\n" for line in step.lines) + "exit\n")
        return [
            f'printf %s {text} > $d/lines; HOME=$d script -qec "$B shell -- bash -i" /dev/null < $d/lines',
            "sleep 0.05",
        ]
    if step.do == "run":
        words = " ".join(quote(w) for w in command(step))
        stdin = step.stdin or (step.script if step.form == "stdin" else "")
        line = (
            f"$B record -- {words}"
            + (f" < {stdin}" if stdin else " < /dev/null")
            + (f" > {step.stdout}" if step.stdout else "")
        )
        if step.background:
            return [line + " &", "sleep 0.05"]
        if step.signal_after:
            line += f" & p=$!; while [ ! -s {step.signal_after} ]; do sleep 0.01; done; kill -9 $p; wait"
        return [f"(cd {step.cwd}; {line})" if step.cwd != "." else line, "sleep 0.05"]
    if step.do == "during":
        edits = "; ".join(op_line(op) for op in step.ops)
        return [
            f"(while [ ! -s {step.when} ]; do sleep 0.01; done; sleep 0.02; {edits}) &  # while the next run goes on"
        ]
    if step.do == "undo":
        return [f"$B undo {path_word(op.path)}" for op in step.ops]
    return [op_line(op) for op in step.ops]


def transcript(case: Case, finding: Finding) -> str:
    """Returns the script."""
    title = f"{finding.question}: {finding.verdict}: {finding.path}: {finding.detail}".replace("\n", " ")
    lines = [
        line for e in [*case.entries, *[x for r in case.runs() for x in script_entries(r)]] for line in entry_lines(e)
    ]
    lines.append("cp -a . $d/fresh; sleep 0.05")
    for i, step in enumerate(case.steps):
        lines += step_lines(step)
        if i == 0 and step.do == "run" and finding.question not in ("record", "fresh"):
            lines.append("$B status > /dev/null  # adds the run to the store")
    lines += ["wait; sleep 0.05"] if any(s.background or s.do == "during" for s in case.steps) else []
    results = [p for p in finding.path.split(", ") if p]
    names = " ".join(shlex.quote(p) for p in results)
    asked = " ".join(shlex.quote(p) for p in finding.asked or results)
    changes = [op for s in case.steps if s.do in ("change", "during") for op in s.ops]
    if finding.question in ("fresh", "status"):
        lines.append(f"$B status {names}")
    elif finding.question == "of":
        lines.append(f"$B of --inputs {names}")
    elif finding.question == "uses":
        lines += [f"$B uses {path_word(op.path)}" for op in changes]
    elif finding.question == "export":
        form = "make" if " make " in finding.detail else "shell"
        lines += [f"$B export {form} {names} > $d/exported; cat $d/exported"]
    elif finding.question in ("rerun", "again", "person"):
        lines += [f'$B rerun --yes {asked}; echo "status $?"', f"$B status {asked}", f"$B rerun --yes {asked}"]
    if results and finding.question != "record":
        lines.append(f"echo '-- now:'; head -v -n 99 {names}")
    if len(case.runs()) == 1 and changes and finding.question != "record":
        run = case.runs()[0]
        again = " ".join(quote(w) for w in command(run))
        stdin = run.stdin or (run.script if run.form == "stdin" else "")
        fresh = "; ".join(op_line(op) for op in changes)
        lines.append(
            f"echo '-- a fresh execution:'; cd $d/fresh; {fresh}; {again}"
            + (f" < {stdin}" if stdin else "")
            + (f" > {run.stdout}" if run.stdout else "")
        )
        if names:
            lines.append(f"head -v -n 99 {names}")
    callers = f" TRUTH_BIN={os.environ.get('TRUTH_BIN')}" if "TRUTH_BIN" in case.to_json() else ""
    return HEAD.format(title=title, callers=callers) + "\n".join(lines) + "\n"
