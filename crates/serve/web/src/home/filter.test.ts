import { expect, test } from "vitest";
import { asParameters, filterOf, words } from "./filter.ts";

test("only what narrows the list is part of a filter", () => {
  const query = new Map([["text", "cc"], ["sort", "name"], ["status", "failed"], ["host", ""]]);
  expect(filterOf(query)).toEqual({ text: "cc", status: "failed" });
});

test("a day in `until` includes that day", () => {
  const { since, until } = asParameters({ since: "2026-11-20", until: "2026-11-20" });
  expect(Number(until) - Number(since)).toBe(86_400);
});

test("a filter is shown in words", () => {
  expect([words("status", "ok"), words("complete", "false"), words("command", "cc*"), words("text", "a")]).toEqual([
    "ended well", "incomplete", "command: cc*", "“a”",
  ]);
});
