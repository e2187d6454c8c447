import { expect, test } from "vitest";
import type { ProcessRow } from "../api/types.ts";
import { flame, place } from "./flame.ts";
import { bars } from "./tree.ts";

const process = (id: string, parent: string | null, program: string, start: number, end: number): ProcessRow => ({
  id, parent, pid: 1, epoch: 1, cwd: "/", argv: [`/usr/bin/${program}`], line: program, start, end, execed: false, marked: false, processor_seconds: null, lookups_known: true, via: "library", attributes: [], records: [], env_set: [], env_unset: [],
});
const make = bars([process("m", null, "make", 0, 10), process("a", "m", "cc", 1, 4), process("b", "m", "cc", 4, 7), process("c", "a", "as", 2, 3), process("d", "m", "ld", 7, 8)]);
const top = flame(make.filter((bar) => bar.process.parent == null));

test("siblings with the same program are one frame, and their time adds up", () => {
  const placed = place(top, "", 0);
  expect(placed.map((each) => [each.frame.program, each.frame.bars.length, each.depth, each.seconds])).toEqual([
    ["make", 1, 0, 10], ["cc", 2, 1, 6], ["ld", 1, 1, 1], ["as", 1, 2, 1],
  ]);
});

test("a zoomed frame and those above it take the whole width", () => {
  const placed = place(top, "/make/cc", 0);
  expect(placed.filter((each) => each.width === 1).map((each) => each.frame.program)).toEqual(["make", "cc"]);
  expect(placed.map((each) => each.frame.program)).not.toContain("ld");
});
