import { expect, test } from "vitest";
import type { RunDifference } from "../api/types.ts";
import { groups, stretches, unused } from "./groups.ts";

const difference = (weight: string, more: Partial<RunDifference> = {}): RunDifference => ({
  kind: "input", of: "/a", weight, sentence: weight, after: 0, one_side: false, versions: [null, null], fed_by: [], no_byte_of: [], intermediate: false, ...more,
});

test("the reader's own files come first, and the system's are folded", () => {
  const made = groups({ differences: [difference("system"), difference("new"), difference("own")] });
  expect(made.map((group) => [group.id, group.quiet])).toEqual([["own", false], ["system", true], ["new", false]]);
});

test("each weight has words of its own", () => {
  const weights = ["own", "command", "system", "noise", "consequence", "result"];
  const made = groups({ differences: weights.map((weight) => difference(weight)) });
  expect(made.filter((group) => group.title === group.id)).toEqual([]);
});

test("an own file that differs because of another is a consequence", () => {
  expect(groups({ differences: [difference("own", { intermediate: true, fed_by: [0] })] })[0]?.id).toBe("consequence");
});

test("causes without a byte in an output are named", () => {
  const causes = [difference("own", { of: "/used" }), difference("own", { of: "/unused" })];
  const output = difference("result", { kind: "output", fed_by: [0, 1], no_byte_of: [1] });
  expect(unused({ differences: [...causes, output] }, output)).toEqual(["/unused"]);
});

test("a long stretch without a difference is one row", () => {
  const step = (same: boolean) => ({ a: null, b: null, same });
  const made = stretches([step(true), step(true), step(false), ...Array.from({ length: 9 }, () => step(true))]);
  expect(made.map((stretch) => (stretch.kind === "same" ? stretch.count : 1))).toEqual([1, 1, 1, 9]);
});
