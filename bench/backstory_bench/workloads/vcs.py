"""VCS checkout: commits of a generated history, by git and by Mercurial."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .base import Instance, program

GROUP = "VCS checkout"
COMMITS, FILES = 300, 120


def _git(root: Path) -> None:
    stream = ["reset refs/heads/main\n"]
    for i in range(COMMITS):
        text = "".join(f"line {k} as of commit {i if k % 7 == i % 7 else 0}\n" for k in range(60))
        stream.append(
            f"commit refs/heads/main\ncommitter Bench <bench@localhost> {1700000000 + i} +0000\ndata 1\nx\n"
            f"M 100644 inline src/f{i % FILES:03d}.txt\ndata {len(text)}\n{text}\n"
        )
    repo = root / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    git = ["git", "-C", str(repo)]
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "main"], check=True)


def _mercurial(root: Path) -> None:
    repo = root / "repo"
    hg = ["hg", "--config", "ui.username=bench", "-R", str(repo)]
    env = os.environ | {"HGPLAIN": "1"}
    subprocess.run(["hg", "init", str(repo)], check=True, env=env)
    for commit in range(6):
        for i in range(FILES):
            (repo / f"f{i:03d}.txt").write_text(f"file {i} as of commit {commit}\n" * 40)
        subprocess.run([*hg, "commit", "-q", "-A", "-m", "x", "-d", f"{1700000000 + commit} 0"], check=True, env=env)


INSTANCES = [
    Instance(
        GROUP,
        "git",
        "git checkout of old commits and back",
        "for back in 250 100 0; do git -C repo checkout -q main~$back; done",
        (program("git"),),
        _git,
        outputs=("repo/src",),
        before="git -C repo checkout -q main",
    ),
    Instance(
        GROUP,
        "hg",
        "hg update to old commits and back",
        "for rev in 0 3 5; do hg -R repo update -q -r $rev; done",
        (program("hg", "mercurial"),),
        _mercurial,
        before="export HGPLAIN=1",
        outputs=("repo/f000.txt", "repo/f119.txt"),
    ),
]
