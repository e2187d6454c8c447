import { expect, test } from "vitest";
import type { ProcessRow } from "../api/types.ts";
import { bars, ticks } from "./tree.ts";

const process = (id: string, parent: string | null, start: number, end: number): ProcessRow => ({
  id, parent, pid: 1, epoch: 1, cwd: "/", argv: [], line: id, start, end, execed: false, marked: false, processor_seconds: null, lookups_known: true, via: "library", attributes: [], records: [], env_set: [], env_unset: [],
});

test("a child lies below its parent, and siblings stand in order of time", () => {
  const tree = bars([process("c", "a", 5, 6), process("a", null, 0, 9), process("b", "a", 1, 2), process("d", "b", 1, 2)]);
  expect(tree.map((bar) => [bar.process.id, bar.depth])).toEqual([["a", 0], ["b", 1], ["d", 2], ["c", 1]]);
});

test("processes that run at the same time have rows of their own", () => {
  const tree = bars([process("a", null, 0, 9), process("b", "a", 1, 5), process("c", "a", 2, 4), process("d", "a", 6, 7)]);
  expect(Object.fromEntries(tree.map((bar) => [bar.process.id, bar.lane]))).toEqual({ a: 0, b: 1, c: 2, d: 1 });
});

test("the parts of a program between calls of its functions have one row", () => {
  const part = (id: string, parent: string | null, epoch: number, line: string, start: number, end: number): ProcessRow => ({
    ...process(id, parent, start, end), epoch, line, marked: epoch > 1,
  });
  const tree = bars([
    part("a1", null, 1, "a", 0, 1), part("f", "a1", 2, "f()", 1, 2), part("a2", "a1", 3, "a", 2, 3), part("g1", "a2", 4, "g()", 3, 4),
    // A function that calls itself is no part of the first call.
    part("h", "g1", 5, "g()", 4, 5), part("g2", "g1", 6, "g()", 5, 6), part("a3", "a2", 7, "a", 6, 7),
  ]);
  const rows = Object.fromEntries(tree.map((bar) => [bar.process.id, bar.lane]));
  expect(rows).toEqual({ a1: 0, f: 1, a2: 0, g1: 1, h: 2, g2: 1, a3: 0 });
});

test("a process whose parent is unknown, or is itself, is still shown", () => {
  expect(bars([process("a", "gone", 0, 1), process("b", "b", 0, 1), process("c", "d", 0, 1), process("d", "c", 0, 1)]).length).toBe(4);
});

test("ten thousand generations do not exhaust the stack", () => {
  expect(bars(Array.from({ length: 10_000 }, (_, index) => process(String(index), index ? String(index - 1) : null, index, 20_000))).length).toBe(10_000);
});

test("a scale has round steps", () => {
  expect(ticks(0.082, 6)).toEqual([0, 0.02, 0.04, 0.06, 0.08]);
  expect(ticks(0, 6)).toEqual([0]);
});
