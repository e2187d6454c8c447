"""Kinds of line for Perl."""

from . import row


def perl(name: str, text: str, **more: str) -> None:
    """Adds a kind of line for Perl."""
    row(name, text, "perl", **more)


OUT = 'open(O, ">", "{out}"); '
perl("pl-copy", OUT + 'open(I, "{lines}"); print O <I>; close O;')
perl("pl-qx", OUT + "print O `cat {lines}`; close O;")
perl("pl-qx-word", '$n = `cat {num}`; chomp $n; system("head -n $n {lines} > {out}");')
perl("pl-read-word", 'open(I, "{num}"); $n = <I>; chomp $n; system("head -n $n {lines} > {out}");')
perl("pl-system-list", 'open(I, "{word}"); chomp($w = <I>); system("cp", "{lines}", "{out}.$w");')
perl("pl-status", OUT + 'system("grep -q yes {flag}"); print O $? >> 8, "\\n"; close O;', flags="fails")
perl(
    "pl-status-if",
    'if (system("grep -q yes {flag}") == 0) { system("cat {lines} > {out}") } else { system("sort -r {lines} > {out}") }',
    flags="fails",
)
perl("pl-glob", OUT + 'print O join("\\n", sort(glob("{dir}/*"))), "\\n"; close O;')
perl(
    "pl-opendir", OUT + 'opendir(D, "{dir}"); print O join(" ", sort(grep { !/^\\./ } readdir D)); closedir D; close O;'
)
perl("pl-size", OUT + 'print O -s "{lines}"; close O;')
perl("pl-exists", OUT + 'print O (-e "{maybe}" ? "there" : "missing"); close O;')
perl("pl-exec-bit", OUT + 'print O (-x "{mode}" ? 1 : 0), sprintf("%o", (stat "{mode}")[2]); close O;')
perl(
    "pl-mtime", OUT + 'print O ((stat "{lines}")[9] > (stat "{lines2}")[9] ? "newer" : "older"); close O;', flags="src"
)
perl("pl-readlink", OUT + 'print O readlink("{link}"); close O;')
perl(
    "pl-fork",
    'if (!($p = fork)) { open(O, ">", "{out}"); open(I, "{lines}"); print O reverse <I>; close O; exec "true"; } waitpid($p, 0);',
)
perl("pl-pipe-open", OUT + 'open(P, "-|", "sort", "{lines}"); print O <P>; close P; close O;')
perl("pl-pipe-to", 'open(P, "| sort > {out}"); open(I, "{lines}"); print P <I>; close P;')
perl(
    "pl-pipe-fork",
    'pipe(R, W); if (!($p = fork)) { close R; open(I, "{word}"); print W <I>; close W; exec "true"; } close W; '
    + OUT
    + "print O <R>; close O; waitpid($p, 0);",
)
perl("pl-do", 'open(O, ">", "{out}"); print O do { local (@ARGV, $/) = "{lines}"; <> }; close O;')
perl("pl-inplace", 'system("cp {lines} {out}"); { local ($^I, @ARGV) = ("", "{out}"); while (<>) { s/a/A/; print } }')
perl("pl-rename", 'open(O, ">", "{out}.t"); open(I, "{lines}"); print O <I>; close O; rename("{out}.t", "{out}");')
perl("pl-seek", 'open(I, "{lines}"); open(N, "{num}"); $n = <N>; seek(I, $n, 0); ' + OUT + "print O <I>; close O;")
perl(
    "pl-shared-offset",
    'open(I, "{lines}"); sysread(I, $x, 3); if (!($p = fork)) { open(STDIN, "<&I"); exec "cat > {out}" } waitpid($p, 0);',
)
perl("pl-chld-ignore", '{ local $SIG{CHLD} = "IGNORE"; system("cat {lines} > {out}"); }')
perl(
    "pl-kill",
    '$SIG{USR1} = sub { system("cat {word} > {out}") }; open(F, "{flag}"); if (<F> =~ /yes/) { kill "USR1", $$ } else { system("echo none > {out}") } ',
)
perl("pl-env", 'open(I, "{word}"); chomp($ENV{WW} = <I>); system(\'echo "$WW" > {out}\');')
perl("pl-eval", 'open(I, "{num}"); $n = eval(join("", <I>) . " * 2"); ' + OUT + "print O $n; close O;")
perl("pl-chmod", 'system("cat {lines} > {out}"); open(I, "{mode}"); chmod(oct(<I>), "{out}");')
perl(
    "pl-exit-child",
    'if (!($p = fork)) { open(I, "{num}"); $n = <I>; exit $n } waitpid($p, 0); ' + OUT + "print O $? >> 8; close O;",
    flags="fails",
)
perl(
    "pl-count-up",
    'open(I, "{num}"); $n = <I>; close I; open(O, ">", "{num}"); print O $n + 1, "\\n"; close O; system("head -n $n {lines} > {out}") if $n =~ s/\\n//;',
    flags="rmw",
)
perl(
    "pl-sysv-shm",
    '$k = shmget(0, 100, 01600); if (!($p = fork)) { open(I, "{word}"); $w = <I>; shmwrite($k, $w, 0, length $w); exec "true" } waitpid($p, 0); shmread($k, $w, 0, 20); shmctl($k, 0, 0); $w =~ s/\\0//g; '
    + OUT
    + "print O $w; close O;",
)
perl(
    "pl-big-pipe", OUT + 'open(P, "-|", "cat", "{big}"); $n = 0; $n += length while <P>; close P; print O $n; close O;'
)
