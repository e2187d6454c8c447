import { expect, test } from "vitest";
import { decodeBytes, encodeBytes } from "./bytes.ts";

test("a path survives the address of the page", () => {
  for (const path of ["/a b/c&d=é?#.txt", "/x\udcff\udce9y", "/emoji😀+plus", "/new\nline", "/100%"]) {
    expect(decodeBytes(encodeBytes(path))).toBe(path);
  }
});

test("a byte that is not UTF-8 is sent as that byte", () => {
  expect(encodeBytes("/a\udcff")).toBe("/a%FF");
});

test("a path stays readable in the address", () => {
  expect(encodeBytes("/home/ada/a b.txt")).toBe("/home/ada/a%20b.txt");
});
