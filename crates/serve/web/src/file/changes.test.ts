import { expect, test } from "vitest";
import { changeWords, toneOf, versionsOf } from "./changes.ts";
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
