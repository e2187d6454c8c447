"""Kinds of rule for ninja. `generate.py` adds the target `all` with all results."""

import re

from . import row

HEAD = "ninja_required_version = 1.3"
BUILD = re.compile(r"build ([^:]*): sh (.*)\n  cmd = (.*)")


def nj(name: str, text: str, **more: str) -> None:
    """Adds a kind of rule for ninja.

    Each `sh` becomes a rule of its own, in which `$in` and `$out` are known.
    """
    count = 0

    def own_rule(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        outs, inputs, command = match.groups()
        return f"rule sh{{id}}x{count}\n  command = {command}\nbuild {outs}: sh{{id}}x{count} {inputs}"

    row(name, BUILD.sub(own_rule, text), "ninja", needs="ninja", **more)


nj("nj-rule", "build {out}: sh {lines}\n  cmd = sort $in > $out")
nj("nj-two", "build {out}: sh {lines} {lines2}\n  cmd = cat $in > $out")
nj("nj-undeclared", "build {out}: sh {lines}\n  cmd = head -n $$(cat {num}) $in > $out")
nj(
    "nj-chain",
    "build {out}.t: sh {lines}\n  cmd = tail -n 2 $in > $out\nbuild {out}: sh {out}.t\n  cmd = tr a-z A-Z < $in > $out",
)
nj(
    "nj-if",
    "build {out}: sh {lines} | {flag}\n  cmd = if grep -q yes {flag}; then cat $in; else sort -r $in; fi > $out",
)
nj(
    "nj-order-only",
    "build {out}.t: sh {word}\n  cmd = cp $in $out\nbuild {out}: sh {lines} || {out}.t\n  cmd = cat $in {out}.t > $out",
)
nj(
    "nj-restat",
    "build {out}.t: sh {lines}\n  cmd = head -n 1 $in > $out.n; cmp -s $out.n $out || cp $out.n $out; rm $out.n\n  restat = 1\nbuild {out}: sh {out}.t\n  cmd = wc -c < $in > $out",
)
nj("nj-include", "build {out}: sh {word}\n  cmd = printf '%s\\n' \"$$(cat $in)\" > $out")
nj("nj-script", "build {out}: sh {lines} | {pytool}\n  cmd = python3 {pytool} $in $out")
nj(
    "nj-rsp",
    "rule r{id}\n  command = xargs cat < $out.rsp > $out\n  rspfile = $out.rsp\n  rspfile_content = $in\nbuild {out}: r{id} {lines} {lines2}",
)
nj(
    "nj-depfile",
    'rule d{id}\n  command = cat $in {word} > $out; echo "$out: {word}" > $out.d\n  depfile = $out.d\nbuild {out}: d{id} {lines}',
)
nj("nj-glob", "build {out}: sh {dir}/f1\n  cmd = cat {dir}/* > $out")
nj("nj-two-outs", "build {out} {out}.2: sh {lines}\n  cmd = head -n 1 $in > {out}; tail -n 1 $in > {out}.2")
