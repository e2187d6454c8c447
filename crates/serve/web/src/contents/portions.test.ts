import { expect, test } from "vitest";
import type { PreviewBody } from "../api/types.ts";
import { joined, lengthOf } from "./portions.ts";

const text = (first: number, ...lines: string[]): PreviewBody => ({ view: "text", first, total: 3, lines, cut: false });

test("a portion follows the lines that are there", () => {
  const whole = joined(text(0, "a", "b"), text(2, "c"));
  expect(whole).toEqual(text(0, "a", "b", "c"));
  expect(lengthOf(whole)).toBe(3);
});

test("a portion of another view is left out", () => {
  const hex: PreviewBody = { view: "hex", first: 0, total: 1, rows: [{ offset: 0, hex: "00", text: "." }] };
  expect(joined(text(0, "a"), hex)).toEqual(text(0, "a"));
  expect(lengthOf(hex)).toBe(1);
});
