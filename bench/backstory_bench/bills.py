"""Compares the packages that a recorded run used with those that `syft` declares.

Three Debian packages are built, two commands of npm's packages run, and so do one build and one
program of PyPI's packages. Each result has two bills of materials: `backstory export cyclonedx` is
about what the run used, and `syft` reads the directory with the sources, the installed packages and
the result. Packages are compared by type, name and version, and the table names some that one side
has alone. The CSV has them all.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from .projects import POOL, Source
from .report import read_rows, write_rows

FIELDS = ["result", "type", "name", "version", "declared", "used"]
HEAD = ["Result", "Declared", "Used", "Both", "Only declared", "Only used"]
NAMED = 3
"""Packages of a type that a cell names."""


@dataclass(frozen=True)
class Case:
    """A result, and how it is made."""

    title: str
    prepare: str
    """Shell lines that fetch and install, which are not recorded."""
    command: str
    """The recorded line of the shell."""
    result: str
    """The pattern of the result's name."""
    source: Source | None = None
    """A description of a Debian source package, which has the sums of its files."""


def debian(path: str, sha256: str) -> Case:
    """The build of a Debian package."""
    name, version = Path(path).stem.split("_")
    dsc = Path(path).name
    files = f"$(sed -n '/^Checksums-Sha256:/,/^Files:/s/^ [0-9a-f]* [0-9]* //p' {dsc})"
    fetch = f'for file in {files}; do curl -sSf --retry 3 -O "{POOL}/{Path(path).parent}/$file"; done'
    return Case(
        f"Debian: `{name}` {version}, built",
        f"{fetch}\ndpkg-source --no-check -x {dsc} source",
        "cd source && dpkg-buildpackage -b -uc -us -d",
        f"{name}_{version}_*.deb",
        Source(path, sha256),
    )


NPM = "npm install --silent --no-audit --no-fund {package}@{version}\necho 'console.log(1)' > in.js"
VENV = "python3 -m venv v\nv/bin/pip install -q --upgrade {packages}\n"

CASES = {
    "tree": debian("t/tree/tree_2.1.0-1.dsc", "57da9be8a9c455077bae9e4909fab01cc62b25dbdea64042b4afbc403d599410"),
    "lzip": debian("l/lzip/lzip_1.23-5.dsc", "da41cf9971e587141afd160181ed80bab1e536c79d442ce6b77ce99ada15259a"),
    "hello": debian("h/hello/hello_2.10-3.dsc", "75296f5ef618ae2f1849e22b142a2b5ab52c452ebefa4e7b0564c44617db3790"),
    "esbuild": Case(
        "npm: `esbuild` 0.25.0 bundles a script",
        NPM.format(package="esbuild", version="0.25.0"),
        "node_modules/.bin/esbuild in.js --bundle --outfile=out.js",
        "out.js",
    ),
    "eslint": Case(
        "npm: `eslint` 9.20.0 checks a script",
        NPM.format(package="eslint", version="9.20.0")
        + '\necho \'module.exports = [{rules: {"no-unused-vars": "error"}}]\' > eslint.config.js',
        "node node_modules/eslint/bin/eslint.js in.js -o report.txt",
        "report.txt",
    ),
    "markupsafe": Case(
        "PyPI: `markupsafe` 3.0.2, built",
        VENV.format(packages="setuptools==75.8.0")
        + "v/bin/pip download -q --no-deps --no-binary :all: markupsafe==3.0.2\ntar -xf markupsafe-*.tar.gz",
        "v/bin/pip wheel -q --no-deps --no-index --no-build-isolation -w made ./markupsafe-3.0.2",
        "made/*.whl",
    ),
    "numpy": Case(
        "PyPI: a program that uses `numpy` 2.2.2",
        VENV.format(packages="numpy==2.2.2"),
        "v/bin/python -c 'import numpy; numpy.savetxt(\"out.txt\", numpy.linalg.inv(numpy.eye(3)))'",
        "out.txt",
    ),
}


@dataclass(frozen=True, order=True)
class Package:
    """A package of a bill of materials."""

    type: str
    name: str
    version: str

    @classmethod
    def of(cls, purl: str) -> Package | None:
        """Reads a package URL. `None` for one without a version."""
        path = purl.removeprefix("pkg:").split("#")[0].split("?")[0]
        kind, _, rest = path.partition("/")
        name, _, version = rest.rpartition("@")
        if not name:
            return None
        name = unquote(name)
        # Debian's distribution is part of the name, and PyPI's names have many spellings.
        name = name.removeprefix("debian/") if kind == "deb" else name
        name = name.lower().replace("_", "-") if kind == "pypi" else name
        return cls(kind, name, unquote(version))


def packages(bill: Mapping[str, object]) -> set[Package]:
    """The packages of a bill in CycloneDX's JSON."""
    components = bill.get("components")
    some = {Package.of(str(one["purl"])) for one in components if "purl" in one} if isinstance(components, list) else ()
    return {one for one in some if one}


def named(some: Iterable[Package]) -> str:
    """Names a few of the packages, by type."""
    by_type: defaultdict[str, list[str]] = defaultdict(list)
    for one in sorted(some):
        if f"`{one.name}`" not in by_type[one.type]:
            by_type[one.type].append(f"`{one.name}`")
    cells = []
    for kind, names in by_type.items():
        words = names[:NAMED] + ([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])
        cells.append(f"{kind}: {', '.join(words)}")
    return "; ".join(cells)


def found(title: str, declared: set[Package], used: set[Package]) -> list[dict[str, object]]:
    """Returns a row of the CSV for each package of a result."""
    rows: list[dict[str, object]] = []
    for one in sorted(declared | used):
        values = [title, one.type, one.name, one.version, int(one in declared), int(one in used)]
        rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def table(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Returns the table of Markdown."""
    sides: dict[str, tuple[set[Package], set[Package]]] = {}
    for one in rows:
        declared, used = sides.setdefault(str(one["result"]), (set(), set()))
        package = Package(str(one["type"]), str(one["name"]), str(one["version"]))
        for side, field in ((declared, "declared"), (used, "used")):
            if int(str(one[field])):
                side.add(package)
    lines = [HEAD, ["---"] * len(HEAD)]
    for title, (declared, used) in sides.items():
        counts = [len(declared), len(used), len(declared & used)]
        lines.append([title, *map(str, counts), named(declared - used), named(used - declared)])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _made(case: Case, home: Path, backstory: str, syft: str) -> list[dict[str, object]]:
    if not (home / "prepared").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        if case.source:
            case.source.fetch(home)
        subprocess.run(["sh", "-ec", case.prepare], cwd=home, stdout=subprocess.DEVNULL, check=True)
        (home / "prepared").touch()
    stored = home.parent / f"{home.name}.store"
    # Only the last run counts.
    shutil.rmtree(stored, ignore_errors=True)
    store = ["--store", str(stored)]
    bills = [home.parent / f"{home.name}.{side}.json" for side in ("used", "declared")]
    subprocess.run(
        [backstory, *store, "record", "--wait", "--", "sh", "-ec", case.command],
        cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    (result,) = home.glob(case.result)
    subprocess.run([backstory, *store, "export", "cyclonedx", str(result), "-o", str(bills[0])], check=True)
    subprocess.run([syft, "scan", "-q", f"dir:{home}", "-o", f"cyclonedx-json={bills[1]}"], check=True)
    used, declared = (packages(json.loads(bill.read_text())) for bill in bills)
    return found(case.title, declared, used)


def main_bills(args: argparse.Namespace) -> int:
    """Makes the results, or reads earlier ones, and prints the table. `--out` names the CSV."""
    if args.results:
        print("\n".join(table(read_rows(args.results, FIELDS))))
        return 0
    rows: list[dict[str, object]] = []
    failed = 0
    for name in args.cases.split(",") if args.cases else CASES:
        try:
            rows += _made(CASES[name], (args.dir / name).resolve(), args.backstory, args.syft)
        except (KeyError, OSError, ValueError, subprocess.CalledProcessError) as error:
            print(f"backstory-bench: {name}: {error}", file=sys.stderr)
            failed = 1
    if args.out:
        write_rows(args.out, FIELDS, rows, args.backstory)
    print("\n".join(table(rows)))
    return failed
