import { expect, test } from "vitest";
import { changeWords, insideLine, toneOf, versionsOf } from "./changes.ts";
import type { FileEvent } from "../api/types.ts";

const event = (change: string, version: string | null, time = 0): FileEvent => ({ time, change, version, inferred: false, path: "/a", kept: true, current: false });

test("each version appears once, with the event that made it", () => {
  const events = [event("metadata", "v2", 3), event("changed", "v2", 2), event("deleted", null, 1.5), event("made", "v1", 1)];
  expect(versionsOf(events).map(({ id, event }) => [id, event.change])).toEqual([["v2", "changed"], ["v1", "made"]]);
});

test("a change that no run recorded is told apart", () => {
  expect(toneOf(event("changed_unseen", null))).toBe("outside");
  expect(changeWords(event("changed_unseen", null))).toBe("changed, not recorded");
});

test("the sentences of an inspector stand in one line, and many are cut", () => {
  expect(insideLine({ sentences: [] })).toBeNull();
  expect(insideLine({ sentences: ["3 cells changed", "`dt` 0.1 → 0.01"] })).toBe("3 cells changed, `dt` 0.1 → 0.01");
  expect(insideLine({ sentences: ["a", "b", "c", "d"] })).toBe("a, b, c, …");
});
