import { expect, test } from "vitest";
import { sides } from "./sides.ts";

const hunk = (...lines: [mark: "both" | "removed" | "added", text: string][]) => ({ a_start: 10, b_start: 20, lines: lines.map(([mark, text]) => ({ mark, text })) });

test("a changed line stands beside its former self, with the changed part marked", () => {
  expect(sides(hunk(["both", "x"], ["removed", "a = 1;"], ["added", "a = 25;"]))).toEqual([
    { a: { number: 10, before: "x", changed: "", after: "" }, b: { number: 20, before: "x", changed: "", after: "" }, same: true },
    { a: { number: 11, before: "a = ", changed: "1", after: ";" }, b: { number: 21, before: "a = ", changed: "25", after: ";" }, same: false },
  ]);
});

test("a line of one side has nothing beside it", () => {
  const rows = sides(hunk(["removed", "old"], ["removed", "older"], ["added", "new"]));
  expect(rows.map((row) => [row.a?.number ?? null, row.b?.number ?? null])).toEqual([[10, 20], [11, null]]);
});

test("no character is cut in two", () => {
  const [row] = sides(hunk(["removed", "😀"], ["added", "😁"]));
  expect([row?.a?.changed, row?.b?.changed]).toEqual(["😀", "😁"]);
});
