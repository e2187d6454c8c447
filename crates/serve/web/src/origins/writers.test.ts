import { expect, test } from "vitest";
import type { ByteWriter } from "../api/types.ts";
import { writerText } from "./writers.ts";

const put = { name: "put", file: "report.c", line: 8 };
const main = { name: "Table::main(int)", file: "report.c", line: 15 };
const libc = { name: "_IO_write", file: "", line: null };

test("a writer is named by its functions with debugging information, the innermost first", () => {
  const writer: ByteWriter = { ranges: [[3, 9]], functions: [libc, put, main], calls: [] };
  expect(writerText(writer)).toBe("Bytes 3-8: written by put() in report.c:8, called by Table::main(int) in report.c:15");
});

test("recorded calls are certain with functions, and only possible without", () => {
  const calls = ["put() in report.c:8 text=a", "put() in report.c:8 text=b"];
  const writer: ByteWriter = { ranges: [[3, 4], [7, 8]], functions: [put], calls };
  expect(writerText(writer)).toBe(`Bytes 3 and others: written by put() in report.c:8, in one of 2 recorded calls: ${calls.join("; ")}`);
  expect(writerText({ ranges: [[3, 4]], functions: [], calls: ["put()"] })).toBe("Possibly written in the recorded call put()");
});

test("nothing is said of functions that are not known", () => {
  expect(writerText({ ranges: [[3, 4]], functions: [libc], calls: [] })).toBe("");
  expect(writerText({ ranges: [[3, 4]], functions: [], calls: [] })).toBe("");
});
