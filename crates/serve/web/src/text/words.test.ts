import { expect, test } from "vitest";
import { ago, bytes, duration, plural, shell, shortLine } from "./words.ts";

test("sizes have three digits at most", () => {
  expect([1, 999, 1000, 26_632, 999_999, 6_809_944].map(bytes)).toEqual(["1 byte", "999 bytes", "1.0 kB", "27 kB", "1.0 MB", "6.8 MB"]);
});

test("durations are read at a glance", () => {
  expect([0.0000421, 0.082, 2.46, 59.4, 83, 3720, 200_000].map(duration)).toEqual([
    "42 µs", "82 ms", "2.5 s", "59 s", "1 min 23 s", "1 h 2 min", "2 d 7 h",
  ]);
});

test("a count agrees with its noun", () => {
  expect([plural(1, "file"), plural(2300, "file"), plural(2, "entry", "entries")]).toEqual(["1 file", "2,300 files", "2 entries"]);
});

test("times near now are relative", () => {
  expect([ago(970, 1000), ago(400, 1000), ago(0, 7200)]).toEqual(["just now", "10 min ago", "2 h ago"]);
});

test("a command can be pasted into a shell", () => {
  expect(shell(["cc", "-O2", "a b.c", "it's", "x\ny", "\udcff"])).toBe("cc -O2 'a b.c' 'it'\\''s' $'x\\ny' $'\\xff'");
});

test("a long path of a program is left out of its line", () => {
  expect(["/usr/bin/cc -c /a/b.c", "cc /a/b", "/bin/sh", "'/a b/c' d"].map(shortLine)).toEqual(["cc -c /a/b.c", "cc /a/b", "sh", "'/a b/c' d"]);
});
