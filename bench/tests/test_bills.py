"""The command `bills`: which packages are the same, and what a row says."""

import argparse
import re
from pathlib import Path

import pytest

from backstory_bench import bills
from backstory_bench.bills import CASES, FIELDS, Package, found, named, packages, table
from backstory_bench.report import read_rows


def test_a_package_has_one_name_in_all_bills() -> None:
    pairs = [
        ("pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64", "pkg:deb/debian/libc6@2.36-9+deb12u14?distro=debian-12"),
        ("pkg:pypi/Typing_Extensions@4.1", "pkg:pypi/typing-extensions@4.1"),
        ("pkg:npm/%40eslint/js@9.1.0", "pkg:npm/@eslint/js@9.1.0"),
        ("pkg:golang/golang.org/x/sys@v0.1#unix", "pkg:golang/golang.org/x/sys@v0.1"),
    ]
    for one, other in pairs:
        assert Package.of(one) == Package.of(other) is not None
    assert Package.of("pkg:npm/made-here") is None


def test_a_bill_has_the_packages_of_its_components() -> None:
    components = [{"purl": "pkg:npm/a@1"}, {"name": "in.js", "type": "file"}, {"purl": "pkg:npm/a@1"}]
    assert packages({"components": components}) == {Package("npm", "a", "1")}
    assert packages({}) == set()


DECLARED = {Package("npm", "a", "1"), Package("npm", "b", "1")}
USED = {Package("npm", "a", "1"), *(Package("deb", name, "2") for name in "wxyz")}


def test_a_row_counts_both_sides_and_names_what_one_side_has_alone() -> None:
    assert table(found("made", DECLARED, USED))[2:] == [
        "| made | 2 | 5 | 1 | npm: `b` | deb: `w`, `x`, `y`, 1 more |",
    ]
    assert named(set()) == ""


def test_each_package_of_a_result_is_a_row_of_the_csv_and_makes_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bills, "_made", lambda case, *_: found(case.title, DECLARED, USED))
    out = tmp_path / "bills.csv"
    given = {"results": None, "out": str(out), "cases": "tree,lzip", "dir": tmp_path, "backstory": "", "syft": ""}
    assert bills.main_bills(argparse.Namespace(**given)) == 0
    printed = capsys.readouterr().out
    lines = out.read_text().splitlines()
    assert lines[0] == "result,type,name,version,declared,used"
    titles = [CASES[name].title for name in ("tree", "lzip")]
    assert len(lines) == 1 + 2 * len(DECLARED | USED) and all(title in printed for title in titles)
    assert sum(line.endswith(",npm,a,1,1,1") for line in lines) == 2
    assert bills.main_bills(argparse.Namespace(results=str(out))) == 0
    assert capsys.readouterr().out == printed


def test_the_page_has_the_table_of_its_results() -> None:
    top = Path(__file__).parents[2]
    page = (top / "docs/howto/export.md").read_text()
    results = re.search(r"`(bench/runs/[^`]*bills.csv)`", page)
    assert results is not None
    assert "\n".join(table(read_rows(top / results[1], FIELDS))) in page
