"""Compile w/gcc: many small files, with one compiler start each.

`gcc -MD` states what each reads.
"""

from __future__ import annotations

import re
from pathlib import Path

from .base import Instance, program

GROUP = "Compile w/gcc"
UNITS = 12


def _prepare(root: Path) -> None:
    names = [f"unit{i:02d}" for i in range(UNITS)]
    for i, name in enumerate(names):
        (root / f"{name}.h").write_text(f"#pragma once\nint {name}(int n);\n")
        uses = "".join(f'#include "{names[(i + k) % UNITS]}.h"\n' for k in range(4))
        (root / f"{name}.c").write_text(
            f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{uses}"
            f'int {name}(int n) {{ char text[32]; snprintf(text, sizeof text, "%d", n); return atoi(text) + (int)strlen(text); }}\n'
        )
    total = " + ".join(f"{n}(7)" for n in names)
    (root / "main.c").write_text(
        "#include <stdio.h>\n"
        + "".join(f'#include "{n}.h"\n' for n in names)
        + f'int main(void) {{ printf("%d\\n", {total}); }}\n'
    )


def stated(root: Path) -> set[str]:
    """Reads sources, headers, objects and the program from the dependency files of `gcc -MD`."""
    found = {str(root / "prog")}
    for path in root.glob("*.d"):
        text = path.read_text().replace("\\\n", " ")
        for word in re.split(r"\s+", text):
            if word:
                found.add(str((root / word.rstrip(":")).resolve()))
    return found


INSTANCES = [
    Instance(
        GROUP,
        "small-files",
        f"gcc on {UNITS + 1} small files, one start each, and the link",
        "for f in *.c; do gcc -MD -O1 -c $f; done; gcc -o prog *.o; ./prog",
        (program("gcc"),),
        _prepare,
        ("*.o", "*.d", "prog"),
        ("prog",),
        stdout=True,
        truth=stated,
    )
]
