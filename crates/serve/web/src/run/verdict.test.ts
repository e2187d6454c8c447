import { expect, test } from "vitest";
import { summary, verdict } from "./verdict.ts";

const record = (state?: string) => ({ schema: state === undefined ? null : { name: "org.example.loss@1", state, why: "" } });

test("a record is valid, not valid, not checked, or has no schema", () => {
  const texts = [record("conforms"), record("violates"), record("unchecked"), record()].map((each) => verdict(each).text);
  expect(texts).toEqual(["valid", "not valid", "not checked", "no schema is registered"]);
});

test("the summary counts what is not valid or not checked", () => {
  expect(summary([record("conforms"), record()])).toBe("");
  expect(summary([record("violates"), record("unchecked"), record("violates")])).toBe(", 2 not valid, 1 not checked");
});
