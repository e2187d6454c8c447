"""Small projects in C, Rust, Go, Python, Perl, JavaScript and shell, with tests of their own.

`ordinary` builds, tests and installs them. None of them needs a network.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write(root: Path, files: Mapping[str, str]) -> None:
    """Writes files below a directory."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


FUNCTIONS = ("count", "reverse", "upper")
"""The sources of the project in C, and the words of its program."""

_BODIES = {
    "count": "int n = 0; for (; *text; text++) n += *text == ' '; sprintf(out, \"%d\", n + 1);",
    "reverse": "int n = strlen(text); for (int i = 0; i < n; i++) out[i] = text[n - 1 - i]; out[n] = 0;",
    "upper": "for (; *text; text++) *out++ = toupper(*text); *out = 0;",
}

_MAIN = """
#include <stdio.h>
#include <string.h>
#include "text.h"
#include "version.h"
int main(int argc, char **argv)
{
    char out[256] = "";
    if (argc != 3 || strlen(argv[2]) > 200) {
        fprintf(stderr, "words %s: count, reverse or upper, and a text\\n", VERSION);
        return 2;
    }
    if (!strcmp(argv[1], "count")) count(argv[2], out);
    if (!strcmp(argv[1], "reverse")) reverse(argv[2], out);
    if (!strcmp(argv[1], "upper")) upper(argv[2], out);
    puts(out);
    return 0;
}
"""

_MAKEFILE = """
CFLAGS = -O1 -Wall
PREFIX = /usr/local
OBJECTS = count.o reverse.o upper.o
all: words
version.h: VERSION
	printf '#define VERSION "%s"\\n' "$$(cat VERSION)" >$@
libtext.a: $(OBJECTS)
	$(AR) rcs $@ $(OBJECTS)
words: main.o libtext.a
	$(CC) -o $@ main.o libtext.a
main.o: main.c text.h version.h
	$(CC) $(CFLAGS) -c -o $@ main.c
$(OBJECTS): text.h
check: words
	sh tests/run.sh ./words
install: words
	mkdir -p $(DESTDIR)$(PREFIX)/bin
	install -m 755 words $(DESTDIR)$(PREFIX)/bin/words
"""

_RUN_TESTS = """
set -e
while read -r what text wanted; do
    found=$("$1" "$what" "$text")
    [ "$found" = "$wanted" ] || { echo "FAIL: $what $text: $found"; exit 1; }
    echo "PASS: $what $text"
done <tests/cases.txt
"""

_CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(text C)
configure_file(version.h.in version.h)
add_library(text STATIC count.c reverse.c upper.c)
add_executable(words main.c)
target_include_directories(words PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(words text)
enable_testing()
foreach(number RANGE 9)
    add_test(NAME upper${number} COMMAND words upper abc${number})
    set_tests_properties(upper${number} PROPERTIES PASS_REGULAR_EXPRESSION ABC${number})
endforeach()
"""


def c_project(root: Path) -> None:
    """A library, a program and 20 tests, for make and for cmake."""
    sources = {
        f"{name}.c": f'#include <ctype.h>\n#include <stdio.h>\n#include <string.h>\n#include "text.h"\n'
        f"void {name}(const char *text, char *out) {{ {_BODIES[name]} }}\n"
        for name in FUNCTIONS
    }
    header = "".join(f"void {name}(const char *text, char *out);\n" for name in FUNCTIONS)
    cases = [f"upper abc{number} ABC{number}\n" for number in range(10)]
    cases += [f"reverse {number} {str(number)[::-1]}\n" for number in range(12, 22)]
    write(
        root,
        {
            **sources,
            "text.h": header,
            "main.c": _MAIN,
            "VERSION": "1.0\n",
            "version.h.in": '#define VERSION "1.0"\n',
            "Makefile": _MAKEFILE,
            "CMakeLists.txt": _CMAKE,
            "tests/run.sh": _RUN_TESTS,
            "tests/cases.txt": "".join(cases),
        },
    )


def rust_project(root: Path) -> None:
    """A library with unit tests, a program, and integration tests, without dependencies."""
    write(
        root,
        {
            "Cargo.toml": '[package]\nname = "words"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n',
            "src/lib.rs": "pub fn count(text: &str) -> usize {\n    text.split_whitespace().count()\n}\n\n"
            '#[test]\nfn words_are_counted() {\n    assert_eq!(count("a b  c"), 3);\n}\n',
            "src/main.rs": 'fn main() {\n    println!("{}", words::count("the quick brown fox"));\n}\n',
            "tests/empty.rs": '#[test]\nfn an_empty_text_has_no_word() {\n    assert_eq!(words::count(""), 0);\n}\n',
        },
    )


def go_project(root: Path) -> None:
    """A module of two packages, one with tests."""
    write(
        root,
        {
            "go.mod": "module example.org/words\n\ngo 1.19\n",
            "main.go": 'package main\n\nimport (\n\t"fmt"\n\n\t"example.org/words/text"\n)\n\n'
            'func main() {\n\tfmt.Println(text.Sorted("the quick brown fox"))\n}\n',
            "text/text.go": 'package text\n\nimport (\n\t"sort"\n\t"strings"\n)\n\n'
            "func Sorted(words string) []string {\n\tall := strings.Fields(words)\n\tsort.Strings(all)\n\treturn all\n}\n",
            "text/text_test.go": 'package text\n\nimport "testing"\n\n'
            'func TestSorted(t *testing.T) {\n\tif all := Sorted("b a"); len(all) != 2 || all[0] != "a" {\n'
            "\t\tt.Fatal(all)\n\t}\n}\n",
        },
    )


_PYTEST = """
import json
import subprocess
import sys

import pytest

from words import count, load, save


@pytest.mark.parametrize("number", range(30))
def test_words_are_counted(number):
    assert count("word " * number) == number


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_what_was_saved_is_loaded(tmp_path, name):
    save(tmp_path / name, {"name": name})
    assert load(tmp_path / name) == {"name": name}


def test_the_program_counts_its_input():
    done = subprocess.run([sys.executable, "-m", "words"], input="a b c", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == 3


def test_the_environment_is_restored(monkeypatch):
    monkeypatch.setenv("WORDS", "3")
"""

_UNITTEST = """
import tempfile
import unittest
from pathlib import Path

from words import count, load, save


class Words(unittest.TestCase):
    def test_words_are_counted(self):
        for number in range(50):
            self.assertEqual(count("word " * number), number)

    def test_what_was_saved_is_loaded(self):
        with tempfile.TemporaryDirectory() as top:
            for number in range(20):
                save(Path(top) / "a.json", {"number": number})
                self.assertEqual(load(Path(top) / "a.json"), {"number": number})
"""

PACKAGE = {
    "words/__init__.py": "import json\n\n\ndef count(text):\n    return len(text.split())\n\n\n"
    "def save(path, value):\n    path.write_text(json.dumps(value))\n\n\n"
    "def load(path):\n    return json.loads(path.read_text())\n",
    "words/__main__.py": "import sys\n\nfrom words import count\n\nprint(count(sys.stdin.read()))\n",
}
"""The package of the project in Python."""


def python_project(root: Path) -> None:
    """A package with tests for pytest and for unittest."""
    tests = {"pytest.ini": "[pytest]\ntestpaths = tests\n", "tests/test_words.py": _PYTEST}
    write(root, {**PACKAGE, **tests, "unit/__init__.py": "", "unit/test_unit.py": _UNITTEST})


def _wheel(path: Path, name: str, files: Mapping[str, str], metadata: str = "", points: str = "") -> None:
    info = f"{name}-1.0.dist-info"
    every = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if points:
        every[f"{info}/entry_points.txt"] = points
    every[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*every, f"{info}/RECORD"])
    with zipfile.ZipFile(path / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for file, text in every.items():
            wheel.writestr(file, text)


def wheels(root: Path) -> None:
    """Two wheels: a package, and a program that needs it."""
    path = root / "wheels"
    path.mkdir()
    _wheel(path, "words", PACKAGE)
    program = {"words_cli.py": "from words import count\n\n\ndef main():\n    print(count('a b c'))\n"}
    _wheel(path, "words_cli", program, "Requires-Dist: words\n", "[console_scripts]\nwords = words_cli:main\n")


def npm_project(root: Path) -> None:
    """A program that needs a package with an install script, which is an archive."""
    package = {
        "package.json": '{"name": "bench-words", "version": "1.0.0", "scripts": {"postinstall": "node build.js"}}\n',
        "build.js": "require('fs').writeFileSync('built.json', JSON.stringify({built: true}));\n",
        "index.js": "exports.count = text => text.split(' ').length;\n",
    }
    with tarfile.open(root / "bench-words-1.0.0.tgz", "w:gz") as archive:
        for name, text in package.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    write(
        root / "project",
        {
            "package.json": '{"name": "program", "version": "1.0.0", "private": true,'
            ' "dependencies": {"bench-words": "file:../bench-words-1.0.0.tgz"}}\n',
            "main.js": "console.log(require('bench-words').count('a b c'));\n",
        },
    )


def node_tests(root: Path) -> None:
    """Tests for the runner of Node.js."""
    test = (
        "const test = require('node:test');\nconst assert = require('node:assert');\nconst fs = require('node:fs');\n"
        "for (let n = 0; n < 20; n++) test(`file ${n}`, () => {\n"
        "    fs.writeFileSync('made.txt', String(n));\n"
        "    assert.strictEqual(fs.readFileSync('made.txt', 'utf8'), String(n));\n});\n"
    )
    write(root, {"package.json": '{"name": "tests", "private": true}\n', "files.test.js": test})


_SHELL_TESTS = """
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
check() {
    number=$((number + 1))
    [ "$2" = "$3" ] || { echo "not ok $number - $1"; exit 1; }
    echo "ok $number - $1"
}
"""


def shell_suite(root: Path) -> None:
    """Twelve scripts of tests, which call the tools of the shell."""
    body = (
        ". ./t/lib.sh\n"
        "printf 'b {n}\\na {n}\\n' >\"$work/in\"\n"
        'check sort "$(sort "$work/in" | head -n 1)" \'a {n}\'\n'
        "check sed \"$(sed -n 's/^b /c /p' \"$work/in\")\" 'c {n}'\n"
        'check awk "$(awk \'{{ n += $2 }} END {{ print n }}\' "$work/in")" {sum}\n'
        'cp "$work/in" "$work/copy"\n'
        'check cmp "$(cmp "$work/in" "$work/copy" && echo same)" same\n'
        'check diff "$(sed \'s/b/x/\' "$work/in" | diff "$work/in" - | grep -c \'^>\')" 1\n'
    )
    scripts = {f"t/{n:02d}-tools.sh": body.format(n=n, sum=2 * n) for n in range(12)}
    write(root, {"t/lib.sh": _SHELL_TESTS, **scripts})


def perl_suite(root: Path) -> None:
    """Six scripts of tests for `prove`."""
    body = (
        "use strict; use warnings; use Test::More tests => 3; use File::Temp;\n"
        'my $file = File::Temp->new; print $file "line $_\\n" for 1 .. {n}; close $file;\n'
        "open my $in, '<', $file->filename or die; my @lines = <$in>;\n"
        "is(scalar @lines, {n}); like($lines[0], qr/^line 1$/); is(scalar reverse('abc'), 'cba');\n"
    )
    write(root, {f"t/{n:02d}-lines.t": body.replace("{n}", str(n)) for n in range(1, 7)})
