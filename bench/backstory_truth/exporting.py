"""Exports, executed in a copy.

Goes in: a result that a fresh execution makes different. Comes out: a verdict. The exported script
or makefile is executed in a copy of the snapshot with the changed sources in place. The paths of
the recording are replaced. Unsound: it ends with 0 and the result is not the true one. If the
export says that words were frozen, it is uncertain; if it cannot be executed, it is refused.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from .client import Backstory
from .truth import Place
from .world import Tree, carry, environment, scan

SECONDS = 20


def judge_export(
    backstory: Backstory,
    form: str,
    path: str,
    snapshot: Place,
    present: Place,
    at: Place,
    person: list[str],
    truth: Tree,
) -> tuple[str, str]:
    """Returns a verdict and its reason."""
    answer = backstory.call("export", form, "--", path)
    if answer.status != 0:
        return "refused", f"export {form}: status {answer.status}: {answer.err.strip()[:150]}"
    text = answer.out.replace(str(present.opt), str(at.opt)).replace(str(present.root), str(at.root))
    snapshot.copy(at)
    try:
        carry(person, (present.root, present.opt), (at.root, at.opt))
        script = at.root.with_name("exported")
        script.write_text(text)
        code, said = execute(form, script, at)
        got = scan(at.root).get(path)
    finally:
        at.remove()
    if code != 0:
        return "refused", f"the exported {form} ends with {code}: {said}"
    if got == truth.get(path):
        return "right", ""
    shown = "nothing" if got is None else repr(got[2][:60])
    verdict = "uncertain" if "frozen" in text else "unsound"
    return verdict, f"the exported {form} ends with 0 and leaves {shown}"


def execute(form: str, script: Path, at: Place) -> tuple[int, str]:
    """Executes what was exported; returns its status and its last words."""
    words = ["bash", str(script)] if form == "shell" else ["make", "-s", "-f", str(script)]
    try:
        done = subprocess.run(
            words,
            cwd=at.root,
            env=environment(at.opt),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "too slow"
    return done.returncode, done.stderr.decode(errors="replace").strip()[-150:]
