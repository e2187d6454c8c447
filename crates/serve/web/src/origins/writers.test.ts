import { expect, test } from "vitest";
import type { ByteWriter } from "../api/types.ts";
import { writerLine } from "./writers.ts";

const put = { name: "put", file: "report.c", line: 8 };

test("a writer has the words of the program, and its first bytes", () => {
  const how = "written by put() in report.c:8";
  const writer: ByteWriter = { ranges: [[3, 9]], functions: [put], calls: [], how };
  expect(writerLine(writer)).toEqual({ text: `Bytes 3-8: ${how}`, span: { start: 3, end: 9 } });
  const more = writerLine({ ...writer, ranges: [[3, 4], [7, 8]] });
  expect(more?.text).toBe(`Bytes 3 and others: ${how}`);
});

test("calls without a function that is known are about all of the bytes", () => {
  const writer: ByteWriter = { ranges: [[3, 4]], functions: [], calls: ["put()"], how: "possibly written in the recorded call put()" };
  expect(writerLine(writer)).toEqual({ text: "Possibly written in the recorded call put().", span: null });
  expect(writerLine({ ...writer, how: null })).toBeNull();
});
