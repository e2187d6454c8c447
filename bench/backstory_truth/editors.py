"""Recorded changes of a source, by editors and by makers.

An editor reads what it changes; a maker only writes it.

Goes in: a source, its old content, and a new first line. Comes out: a run. An editor's run is
marked `edit`: its effect is a fact. A maker's run (`cp new old`) is a command like any other.
"""

from __future__ import annotations

import shutil
from random import Random

from .program import Entry, Line, Step

EDITORS = {
    "sed-i": ["sed", "-i", "1s/.*/@L/", "@S"],
    "perl-pi": ["perl", "-pi", "-e", "s/.*/@L/ if $. == 1", "@S"],
    "python": ["python3", "-c", "t = open('@S').read().split('\\n', 1)\nopen('@S', 'w').write('@L\\n' + t[1])"],
    "python-replace": [
        "python3",
        "-c",
        "import os\nt = open('@S').read().split('\\n', 1)\nopen('@S.t', 'w').write('@L\\n' + t[1])\nos.replace('@S.t', '@S')",
    ],
    "ed": ["sh", "-c", "printf '1c\\n%s\\n.\\nw\\nq\\n' '@L' | ed -s @S"],
    "mv-new": ["sh", "-c", "{ echo '@L'; tail -n +2 @S; } > @S.t && mv @S.t @S"],
    "awk-cp": ["sh", "-c", "awk 'NR==1{print \"@L\"; next} 1' @S > @S.t; cp @S.t @S; rm @S.t"],
    "append": ["sh", "-c", "echo '@L' >> @S"],
    "tee-a": ["sh", "-c", "echo '@L' | tee -a @S > /dev/null"],
    "sort-o": ["sort", "-r", "-o", "@S", "@S", "new"],
    "dd-notrunc": ["sh", "-c", "printf '%s\\n' '@L' | dd of=@S conv=notrunc status=none"],
    "chmod": ["chmod", "750", "@S"],
    "touch": ["touch", "@S"],
    "rm": ["rm", "@S"],
    "truncate": ["truncate", "-s", "2", "@S"],
}
MAKERS = {
    "cp": ["cp", "new", "@S"],
    "mv": ["mv", "new", "@S"],
    "install": ["install", "-m", "644", "new", "@S"],
    "cat": ["sh", "-c", "cat new > @S"],
    "printf": ["sh", "-c", "printf '%s\\n' '@L' > @S"],
    "python-write": ["python3", "-c", "open('@S', 'w').write('@L\\n')"],
    "dd": ["dd", "if=new", "of=@S", "status=none"],
    "tee": ["sh", "-c", "tee @S < new > /dev/null"],
    "cp-a": ["cp", "-a", "new", "@S"],
    "cp-f-link": ["ln", "-sf", "new", "@S"],
    "sort": ["sort", "-o", "@S", "new"],
}


def editor(rng: Random, path: str, line: str, name: str = "") -> tuple[Step, list[Entry]]:
    """Returns a run that changes a source, and the entries that it needs."""
    table = {**EDITORS, **MAKERS}
    while not name or (name == "ed" and not shutil.which("ed")):
        name = rng.choice(sorted(EDITORS)) if rng.random() < 0.6 else rng.choice(sorted(MAKERS))
    words = [w.replace("@S", path).replace("@L", line) for w in table[name]]
    uses_new = "new" in " ".join(words).split() or "new" in words
    reads = (["new"] if uses_new else []) + ([path] if name in EDITORS else [])
    step = Step("run", "argv", argv=words, edit=name in EDITORS, lines=[Line(name, "", reads, [path])])
    return step, [Entry("new", "file", line + "\n", 0o644, 1590000000)] if uses_new else []
