"""The command `bills`: which packages are the same, and what a row says."""

from backstory_bench.bills import Package, named, packages, row


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


def test_a_row_counts_both_sides_and_names_what_one_side_has_alone() -> None:
    declared = {Package("npm", "a", "1"), Package("npm", "b", "1")}
    used = {Package("npm", "a", "1"), *(Package("deb", name, "2") for name in "wxyz")}
    assert row("made", declared, used) == [
        *("made", "2", "5", "1", "npm: `b`"),
        "deb: `w`, `x`, `y`, 1 more",
    ]
    assert named(set()) == ""
