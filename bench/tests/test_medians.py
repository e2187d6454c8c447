"""The C programs that compare ways to do the same keep each round."""

import csv
import re
import statistics
import subprocess
from pathlib import Path

import pytest

import backstory_bench

PROGRAMS = Path(backstory_bench.__file__).parent


def compiled(name: str, directory: Path) -> Path:
    program = directory / name
    subprocess.run(["gcc", "-O1", "-Werror", "-o", program, PROGRAMS / f"{name}.c"], check=True)
    return program


@pytest.fixture(scope="module")
def own_links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("own_links", tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("name", ["own_links", "receiver_steps", "receivers", "starts", "statx_batches"])
def test_each_program_compiles_and_refuses_missing_arguments(name: str, tmp_path: Path) -> None:
    program = compiled(name, tmp_path)
    refused = subprocess.run([program, "--csv", tmp_path / "rounds.csv"], check=False)
    assert refused.returncode == 2


def test_the_csv_has_each_round_of_the_printed_medians(own_links: Path, tmp_path: Path) -> None:
    files, out = tmp_path / "files", tmp_path / "rounds.csv"
    files.mkdir()
    command = [own_links, files, "20", "3", "--csv", out]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    machine, *lines = out.read_text().splitlines()
    assert machine.startswith("# Linux-") and machine.endswith(f"; {own_links} {files} 20 3")
    rounds: dict[str, list[float]] = {}
    for row in csv.DictReader(lines):
        assert int(row["round"]) == len(rounds.setdefault(row["way"], []))
        rounds[row["way"]].append(float(row["cpu_ns"]))
    medians = dict(re.findall(r"^(.*): (-?\d+) ns", printed, re.M))
    assert len(rounds) == 4 and rounds.keys() == medians.keys()
    for way, figures in rounds.items():
        assert len(figures) == 3 and abs(statistics.median(figures) - int(medians[way])) <= 1


def test_a_csv_that_cannot_be_made_ends_the_program_before_it_measures(own_links: Path, tmp_path: Path) -> None:
    command = [own_links, tmp_path, "20", "3", "--csv", tmp_path / "missing" / "rounds.csv"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1
    assert not (tmp_path / "kept").exists()


def test_each_start_but_the_native_ones_loads_its_library(tmp_path: Path) -> None:
    compact = ["-DLIBRARY", "-nostdlib", "-Wl,-z,noseparate-code,-z,norelro"]
    kinds = {"compact": compact, "ordinary": ["-DLIBRARY"], "patches": [*compact, "-DPATCHES"]}
    for name, flags in kinds.items():
        library = ["gcc", "-O1", "-Werror", "-shared", "-fPIC", *flags, "-o", tmp_path / f"{name}.so"]
        subprocess.run([*library, PROGRAMS / "starts.c"], check=True)
    out = tmp_path / "rounds.csv"
    printed = subprocess.run(
        [compiled("starts", tmp_path), "5", "3", tmp_path, "--csv", out], check=True, capture_output=True, text=True
    ).stdout
    assert len(printed.splitlines()) == 8
    faults: dict[str, list[float]] = {}
    for row in csv.DictReader(out.read_text().splitlines()[1:]):
        faults.setdefault(row["way"], []).append(float(row["faults"]))
    for way, of in faults.items():
        native = faults[f"{way.split(',')[0]}, native"]
        assert way.endswith("native") or statistics.median(of) > statistics.median(native) + 1, way
