"""Small compiled programs that start others: static and dynamic C, and Go.

Goes in: nothing. Comes out: a directory with the programs, built once for a user. A program that
cannot be built is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static int run(char *const argv[]) {
    fflush(stdout);
    pid_t p = fork();
    if (p == 0) { execvp(argv[0], argv); _exit(127); }
    int status = 0;
    waitpid(p, &status, 0);
    return WEXITSTATUS(status);
}
int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (!strcmp(argv[1], "word")) {
        char n[20] = {0};
        FILE *f = fopen(argv[2], "r");
        if (!f || !fgets(n, sizeof n, f)) return 1;
        n[strcspn(n, "\n")] = 0;
        return run((char *[]){"head", "-n", n, argv[3], 0});
    }
    if (!strcmp(argv[1], "status"))
        return run((char *[]){"grep", "-q", "yes", argv[2], 0}) ? run((char *[]){"sort", "-r", argv[3], 0}) : run((char *[]){"cat", argv[3], 0});
    struct stat s;
    if (!strcmp(argv[1], "look"))
        return stat(argv[2], &s) ? run((char *[]){"sort", "-r", argv[3], 0}) : run((char *[]){"cat", argv[3], 0});
    if (!strcmp(argv[1], "size")) { if (!stat(argv[2], &s)) printf("%ld\n", (long)s.st_size); return 0; }
    if (!strcmp(argv[1], "copy")) {
        FILE *a = fopen(argv[2], "r"), *b = fopen(argv[3], "w");
        if (!a || !b) return 1;
        for (int c; (c = getc(a)) != EOF;) putc(c, b);
        return 0;
    }
    return 2;
}
"""
GO = r"""
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func run(name string, args ...string) int {
	c := exec.Command(name, args...)
	c.Stdout = os.Stdout
	if err := c.Run(); err != nil {
		return 1
	}
	return 0
}

func main() {
	a := os.Args
	switch a[1] {
	case "word":
		b, err := exec.Command("cat", a[2]).Output()
		if err != nil {
			os.Exit(1)
		}
		os.Exit(run("head", "-n", strings.TrimSpace(string(b)), a[3]))
	case "status":
		if run("grep", "-q", "yes", a[2]) == 0 {
			os.Exit(run("cat", a[3]))
		}
		os.Exit(run("sort", "-r", a[3]))
	case "look":
		if _, err := os.Stat(a[2]); err == nil {
			os.Exit(run("cat", a[3]))
		}
		os.Exit(run("sort", "-r", a[3]))
	case "size":
		if s, err := os.Stat(a[2]); err == nil {
			fmt.Println(s.Size())
		}
	case "copy":
		b, err := os.ReadFile(a[2])
		if err != nil {
			os.Exit(1)
		}
		os.WriteFile(a[3], b, 0o644)
	}
}
"""


def build() -> Path:
    """Returns the directory; builds what is missing in it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path(tempfile.gettempdir()) / f"truth-callers-{os.getuid()}")
    place = cache / "backstory-truth-callers-1"
    if (place / "done").exists():
        return place
    place.mkdir(parents=True, exist_ok=True)
    (place / "caller.c").write_text(C)
    (place / "caller.go").write_text(GO)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler:
        for name, options in (("dynamic", []), ("static", ["-static"])):
            subprocess.run(
                [compiler, "-O1", *options, "-o", place / name, place / "caller.c"],
                stderr=subprocess.DEVNULL,
                check=False,
            )
    go = shutil.which("go")
    if go:
        env = {
            **os.environ,
            "GO111MODULE": "off",
            "CGO_ENABLED": "0",
            "GOCACHE": str(place / "go-cache"),
            "GOFLAGS": "-p=1",
        }
        subprocess.run(
            [go, "build", "-o", place / "go", place / "caller.go"], env=env, stderr=subprocess.DEVNULL, check=False
        )
        shutil.rmtree(place / "go-cache", ignore_errors=True)
    (place / "done").touch()
    return place
