import { expect, test } from "vitest";
import { readPreferences, writePreferences } from "./preferences.ts";

test("preferences are read back from the cookie that was written", () => {
  const preferences = { theme: "dark" as const, filters: [{ name: "failed; today", query: "status=failed&text=%FF" }] };
  const cookie = writePreferences(preferences);
  expect(readPreferences(`other=1; ${cookie?.split("; ")[0] ?? ""}`)).toEqual(preferences);
});

test("a foreign cookie of the same name leaves the defaults", () => {
  expect(readPreferences("backstory_page=%7Bnot json")).toEqual({ theme: "auto", filters: [] });
  expect(readPreferences('backstory_page={"theme":"<script>","filters":[{"name":1}]}')).toEqual({ theme: "auto", filters: [] });
});

test("filters that are too long for a cookie are refused", () => {
  expect(writePreferences({ theme: "auto", filters: [{ name: "long", query: "x".repeat(5000) }] })).toBeNull();
});
