"""Nextflow: its launcher if that is installed, else its jar files from Maven's repository.

The launcher downloads its runtime at its first use. The jar files are complete, and download
nothing.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from .. import data
from .base import Instance, Need, program, tree

_DATA = Path(data.__file__).parent
VARIABLE = "NEXTFLOW_LIB"
_SCRIPT = """
process count {
    input: path part
    output: path "count"
    script: "wc -w <$part >count"
}
process total {
    publishDir ".", mode: "copy"
    input: path "count*"
    output: path "total.txt"
    script: "cat count* | sort -n >total.txt"
}
workflow { Channel.fromPath("tree/d000/f0000[0-3].txt") | count | collect | total }
"""


def _jars() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get(VARIABLE) or Path(cache, "backstory-bench", "nextflow"))


def _missing() -> str | None:
    if shutil.which("nextflow") or any(_jars().glob("nextflow-*.jar")):
        return None
    return f"nextflow is not installed, and {_jars()} has no jar files (Maven: io.nextflow:nextflow; or set {VARIABLE})"


def _fetch() -> tuple[str, ...]:
    return (
        *("mvn", "-q", "-B", "-f", str(_DATA / "nextflow.xml"), "dependency:copy-dependencies"),
        *("-DincludeScope=runtime", f"-DoutputDirectory={_jars()}"),
    )


def _words() -> str:
    if launcher := shutil.which("nextflow"):
        return shlex.quote(launcher)
    # Without the permissions in the argument file, Java cannot use the cache of Nextflow.
    words = ["java", f"@{_DATA / 'nextflow.args'}", "-Xmx512m", "-cp", f"{_jars()}/*", "nextflow.cli.Launcher"]
    return shlex.join(words)


def _prepare(root: Path) -> None:
    tree(root, "tree", 4, 4000)
    (root / "count.nf").write_text(_SCRIPT)


INSTANCES = [
    Instance(
        "Workflows",
        "nextflow",
        "Nextflow: five processes",
        f"rm -rf work .nextflow* home total.txt; {_words()} -q run count.nf >nextflow.txt 2>&1",
        (program("java", "default-jre-headless"), Need(_missing, package="maven", commands=(_fetch(),))),
        _prepare,
        ("work", ".nextflow*", "home", "total.txt", "nextflow.txt"),
        ("total.txt",),
        before='export NXF_OFFLINE=true NXF_PLUGINS_DEFAULT=false NXF_HOME="$PWD/home"',
        fixed=True,
    ),
]
