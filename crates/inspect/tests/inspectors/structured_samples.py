"""Samples of JSON, JSON lines and TOML."""

import json
import tomllib
from pathlib import Path

from expectation import expect


def settings(dt, seeds):
    return {"dt": dt, "solver": {"name": "rk4", "a key": None}, "runs": [{"seed": seed} for seed in seeds]}


def structured():
    Path("old.json").write_text(json.dumps(settings(0.1, [1, 2, 3])))
    Path("new.json").write_text(json.dumps(settings(0.01, [1, 3]) | {"n": "3"}, indent=2))
    read = json.loads(Path("old.json").read_text())
    members = [
        {"name": "dt", "value": read["dt"]},
        {"name": "runs", "value": f"list of {len(read['runs'])}"},
        {"name": "solver", "value": f"object of {len(read['solver'])}"},
    ]
    sentences = ["1 member removed: `runs[1]`", "1 member added: `n`", "1 member changed: `dt` 0.1 → 0.01"]
    expect("json", "old.json", "new.json", {"form": "object of 3", "values": 6, "members": members}, sentences)

    Path("written.json").write_text(json.dumps(settings(0.1, [1, 2, 3]), indent=1))
    same = ["the values are the same, written in another way"]
    expect("json with other spaces", "old.json", "written.json", {"lines": 1}, same)

    Path("typed.json").write_text(json.dumps(settings("0.1", [1, 2, 3])))
    typed = ['1 member changed: `dt` 0.1 → "0.1"']
    expect("json with another type", "old.json", "typed.json", {"lines": 1}, typed)

    Path("broken.json").write_text(json.dumps(settings(float("nan"), [1])))
    broken = ["it is no JSON any more: expected value at line 1 column 8", "1 of 1 line changed"]
    expect("json with no number", "old.json", "broken.json", {"lines": 1}, broken)

    lines = [json.dumps({"epoch": at, "loss": 1 / 2**at}) for at in range(4)]
    Path("old.jsonl").write_text("\n".join(lines[:3]) + "\n")
    Path("new.jsonl").write_text("\n".join([lines[0], lines[1].replace("0.5", "0.75"), *lines[2:]]) + "\n")
    added = ["1 member added: `[3]`", "1 member changed: `[1].loss` 0.5 → 0.75"]
    expect("json with lines", "old.jsonl", "new.jsonl", {"form": "list of 3"}, added)

    Path("old.toml").write_text('[solver]\ndt = 0.1\nfrom = 2026-11-26\n[[runs]]\nseed = 1\n"a key" = "x"\n')
    Path("new.toml").write_text('[solver]\ndt = 0.01\nfrom = 2026-11-26\n[[runs]]\nseed = 1\n"a key" = "y"\n')
    read = tomllib.loads(Path("old.toml").read_text())
    members = [
        {"name": "runs", "value": f"list of {len(read['runs'])}"},
        {"name": "solver", "value": f"object of {len(read['solver'])}"},
    ]
    changed = ['2 members changed: `runs[0]["a key"]` x → y, `solver.dt` 0.1 → 0.01']
    expect("toml", "old.toml", "new.toml", {"members": members}, changed)
