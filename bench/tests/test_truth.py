"""The generator and oracle of `scripts/truth`, with stubs in the place of backstory."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from backstory_truth import cli, kinds
from backstory_truth.program import from_json, script_text

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "truth"

STUB = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
every = [os.path.join(d, f) for t in (".", os.environ["TRUTH_OPT"]) for d, _, fs in os.walk(t) for f in fs]
kept = os.environ["BACKSTORY_STORE"]
if os.path.exists(kept):
    every += open(kept).read().split("\\n")
if words[0] == "record":
    open(kept, "w").write("\\n".join(every))
    sys.exit(subprocess.call(words[2:]))
paths = words[words.index("--") + 1:] if "--" in words else []
if words[0] == "status":
    print(json.dumps([{{"path": os.path.abspath(p), "state": "{state}"}} for p in paths]))
    sys.exit({status})
if words[0] in ("of", "uses"):
    listed = sorted({{os.path.relpath(p) for p in every if p}} | {{os.path.abspath(p) for p in every}}) if {names} else []
    print("{{}}" if "--json" in words else "\\n".join([*listed, *[p.split(".")[0] for p in listed]]))
    sys.exit(0)
sys.exit({rerun} if words[0] in ("rerun", "export", "undo") else 0)
"""


def stub(tmp_path: Path, state: str, status: int, names: bool, rerun: int) -> str:
    """Writes a program that answers always the same."""
    path = tmp_path / "backstory"
    path.write_text(STUB.format(python=sys.executable, state=state, status=status, names=names, rerun=rerun))
    path.chmod(0o755)
    return str(path)


def judge(program: str, tmp_path: Path, *options: str) -> tuple[int, dict[str, object]]:
    """Executes `scripts/truth`; returns its status and summary."""
    summary = tmp_path / "summary.json"
    words = [sys.executable, str(SCRIPT), "--backstory", program, "--json", str(summary), "--jobs", "1", *options]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
    return done.returncode, json.loads(summary.read_text())


def test_a_program_that_calls_all_current_is_unsound(tmp_path: Path) -> None:
    status, summary = judge(stub(tmp_path, "current", 0, False, 0), tmp_path, "--count", "10", "--no-shrink")
    assert status == 1
    counts = summary["counts"]
    for question in ("status", "of", "uses", "rerun"):
        assert counts[f"{question}.unsound"] > 0, question


def test_a_program_that_admits_that_it_knows_nothing_is_sound(tmp_path: Path) -> None:
    program = stub(tmp_path, "uncertain", 3, True, 1)
    status, summary = judge(program, tmp_path, "--count", "25", "--no-shrink", "--sessions", "0")
    assert [g for g in summary["groups"] if g["verdict"] == "unsound"] == []
    assert status == 0


def test_a_seed_gives_the_same_case() -> None:
    for number in range(30):
        case = cli.make_case(1, number, [], 0.4)
        assert case.to_json() == cli.make_case(1, number, [], 0.4).to_json()
        assert from_json(case.to_json()).to_json() == case.to_json()


def test_kinds_have_names_of_their_own() -> None:
    kinds.rows_for("dash")
    names = [r.name for rows in kinds.ROWS.values() for r in rows]
    assert len(names) == len(set(names)) > 400


@pytest.mark.parametrize("lang", ["dash", "bash", "python"])
def test_programs_parse(lang: str) -> None:
    seen = 0
    for number in range(200):
        for run in cli.make_case(2, number, [], 0.3).runs():
            if run.form == "argv" or run.lang != lang:
                continue
            seen += 1
            if lang == "python":
                ast.parse(script_text(run))
            else:
                subprocess.run([lang, "-n"], input=script_text(run).encode(), check=True)
    assert seen > 10
