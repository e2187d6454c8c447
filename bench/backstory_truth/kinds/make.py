"""Kinds of rule for make.

`{out}` is a target; all targets stand in `all`, which `generate.py` adds.
"""

from . import row


def mk(name: str, text: str, **more: str) -> None:
    """Adds a kind of rule for make."""
    row(name, text, "make", **more)


mk("mk-rule", "{out}: {lines}\n\tsort $< > $@")
mk("mk-two", "{out}: {lines} {lines2}\n\tcat $^ > $@")
mk("mk-undeclared", "{out}:\n\tcat {lines} > $@", flags="src")
mk("mk-shell-var", "N{id} := $(shell cat {num})\n{out}: {lines}\n\thead -n $(N{id}) {lines} > $@")
mk("mk-shell-lazy", "M{id} = $(shell cat {word})\n{out}:\n\t/bin/echo $(M{id}) > $@")
mk("mk-shell-recipe", "{out}: {lines}\n\thead -n $$(cat {num}) {lines} > $@")
mk("mk-wildcard", "W{id} := $(sort $(wildcard {dir}/f*))\n{out}: $(W{id})\n\tcat $^ > $@")
mk("mk-wildcard-words", "{out}:\n\techo $(sort $(wildcard {dir}/*)) > $@")
mk("mk-pattern", "{out}: {dir}.f1.u {dir}.f2.u\n\tcat $^ > $@\n{dir}.%.u: {dir}/%\n\ttr a-z A-Z < $< > $@")
mk("mk-include", "include {code}\n{out}:\n\techo $(V) > $@")
mk(
    "mk-ifeq",
    "ifeq ($(shell cat {flag}),yes)\n{out}:\n\tcat {lines} > $@\nelse\n{out}:\n\tsort -r {lines} > $@\nendif",
    flags="src",
)
mk(
    "mk-exists",
    "ifneq ($(wildcard {maybe}),)\n{out}:\n\tcat {lines} > $@\nelse\n{out}:\n\techo none > $@\nendif",
    flags="src",
)
mk("mk-order-only", "{out}: {lines} | {out}.d\n\tcat {lines} > {out}.d/x; cp {out}.d/x $@\n{out}.d:\n\tmkdir $@")
mk("mk-recursive", "{out}: {lines}\n\t$(MAKE) -s -f {tool}.mk SRC={lines} DST=$@")
mk("mk-target-var", "{out}: K = $(shell cat {num})\n{out}:\n\thead -n $(K) {lines} > $@", flags="src")
mk("mk-ignored", "{out}: {lines}\n\t-grep yes {flag} > $@.t\n\tcat {lines} $@.t > $@", flags="fails src")
mk("mk-and", "{out}: {lines}\n\tgrep -q yes {flag} && cat {lines} > $@ || echo no > $@")
mk("mk-multi-line", "{out}: {lines}\n\tcat {lines} > $@.t\n\tsort $@.t > $@\n\trm $@.t")
mk("mk-mv", "{out}: {lines}\n\tsort $< > $@.tmp && mv $@.tmp $@")
mk("mk-stage", "{out}: {lines}\n\tmkdir $@.st && cat $< > $@.st/f && mv $@.st $@.fin && cat $@.fin/f > $@")
mk("mk-export", "export E{id} := $(shell cat {word})\n{out}:\n\tprintenv E{id} > $@")
mk("mk-define", "define D{id}\ncat {lines} > {out}\nendef\n{out}: {lines}\n\t$(D{id})", flags="src")
mk("mk-foreach", "{out}: $(foreach f,f1 f2,{dir}/$(f))\n\tcat $^ > $@")
mk("mk-two-targets", "{out}: {out}.x\n\tcp $< $@\n{out}.x: {lines}\n\ttail -n 1 $< > $@")
mk("mk-script", "{out}: {lines} {tool}\n\t./{tool} $< > $@", flags="fails")
mk("mk-file-func", "$(file > {out}.f,$(shell cat {word}))\n{out}: {out}.f\n\tcat $< > $@")
mk("mk-file-read", "{out}:\n\techo $(file < {word}) > $@")
mk("mk-oneshell-sub", "{out}: {lines}\n\tcd {dir} && cat f1 > ../$@")
mk(
    "mk-cc",
    "{out}.o: {out}.c {header}\n\tgcc -c -include {header} -o $@ $<\n{out}.c:\n\techo 'int f(void){return N;}' > $@\n{out}: {out}.o\n\tsize $< | tail -n 1 | cut -f 1 > $@; objdump -d $< | tail -n 4 >> $@",
    needs="gcc objdump",
    flags="slow",
)
mk(
    "mk-ar",
    "{out}.m: {lines}\n\tcp $< $@\n{out}.a: {out}.m\n\tar rcD $@ $<\n{out}: {out}.a\n\tar p $< > $@",
    needs="ar",
)
