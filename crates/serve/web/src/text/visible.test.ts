import { expect, test } from "vitest";
import { pieces, visible } from "./visible.ts";

test("an ordinary name is one piece, whatever its script", () => {
  for (const name of ["results v2.csv", "Bjørgvin.txt", "データ.csv", "<script>alert(1)</script>", "a😀b"]) {
    expect(pieces(name)).toEqual([{ text: name, escaped: false }]);
  }
});

test("a newline, a tab and an escape sequence are shown as escapes", () => {
  expect(visible("a\nb\tc\u001b[31m")).toBe("a\\nb\\tc\\e[31m");
});

test("marks that turn the direction of the text are shown as escapes", () => {
  expect(pieces("photo_\u202egpj.exe")).toEqual([
    { text: "photo_", escaped: false },
    { text: "\\u{202e}", escaped: true },
    { text: "gpj.exe", escaped: false },
  ]);
});

test("a byte that is not UTF-8 is shown as that byte", () => {
  expect(visible("caf\udce9.txt")).toBe("caf\\xe9.txt");
});

test("spaces at the ends and spaces that look like others are shown", () => {
  expect(visible(" a b\u00a0c ")).toBe("\\x20a b\\xa0c\\x20");
});

test("in a line of text, tabs and spaces at the ends are ordinary, and marks are still shown", () => {
  expect(pieces("\tif x: \u202e", true)).toEqual([
    { text: "\tif x: ", escaped: false },
    { text: "\\u{202e}", escaped: true },
  ]);
});
