import { expect, test } from "vitest";
import { excerptStart, MOST, pieces, range, rangeText, rowAt, rowsOf, type Excerpt } from "./pieces.ts";

const bytes = (text: string, from = 0): Excerpt => ({ from, bytes: new TextEncoder().encode(text) });

test("a text has a row for each line, and other contents one for 16 bytes", () => {
  expect(rowsOf(bytes("a,b\nc"))).toEqual([
    { start: 0, end: 4 },
    { start: 4, end: 5 },
  ]);
  expect(rowsOf({ from: 0, bytes: new Uint8Array(20) })).toEqual([
    { start: 0, end: 16 },
    { start: 16, end: 20 },
  ]);
  expect(rowsOf({ from: 0, bytes: new Uint8Array() })).toEqual([]);
});

test("a byte is in the row that begins before it", () => {
  const rows = rowsOf(bytes("ab\ncd\nef\n"));
  expect([0, 2, 3, 8].map((byte) => rowAt(rows, byte))).toEqual([0, 0, 1, 2]);
});

test("a row is cut into words, and where the light begins and ends", () => {
  const content = bytes("ash,10\n");
  const [row] = rowsOf(content);
  const cut = pieces(content, row ?? { start: 0, end: 0 }, [{ start: 1, end: 3, kind: "copied" }, { start: 0, end: 7, kind: "implicit" }], true);
  expect(cut.map((piece) => [piece.text, piece.kind])).toEqual([
    ["a", "implicit"],
    ["sh", "copied"],
    [",", "implicit"],
    ["10", "implicit"],
    ["↵", "implicit"],
  ]);
  expect(cut[1]).toMatchObject({ start: 1, end: 3 });
});

test("an excerpt keeps the offsets of the whole content", () => {
  const content = bytes("a,b\nc", 700);
  const rows = rowsOf(content);
  expect(rows).toEqual([
    { start: 700, end: 704 },
    { start: 704, end: 705 },
  ]);
  expect(rowAt(rows, 704)).toBe(1);
  const cut = pieces(content, { start: 700, end: 704 }, [{ start: 702, end: 703, kind: "chosen" }], true);
  expect(cut.map((piece) => [piece.start, piece.text, piece.kind])).toEqual([
    [700, "a", null],
    [701, ",", null],
    [702, "b", "chosen"],
    [703, "↵", null],
  ]);
});

test("each byte lies within the excerpt that is shown for it, with bytes around it", () => {
  for (const byte of [0, 1, MOST / 2, MOST - 1, MOST, MOST * 1.5, 5_000_000_000]) {
    const from = excerptStart(byte);
    expect(from).toBeGreaterThanOrEqual(0);
    expect(byte + MOST / 4).toBeLessThanOrEqual(from + MOST);
    if (from > 0) expect(byte - from).toBeGreaterThanOrEqual(MOST / 4);
  }
});

test("bytes that are no text are digits", () => {
  const content = { from: 0, bytes: new Uint8Array([0, 255]) };
  expect(pieces(content, { start: 0, end: 2 }, [], false).map((piece) => piece.text)).toEqual(["00 ff"]);
});

test("an address names the first and the last byte", () => {
  expect(range("3-5")).toEqual({ start: 3, end: 6 });
  expect(range("7")).toEqual({ start: 7, end: 8 });
  for (const bad of ["", "5-3", "x", "-1"]) expect(range(bad)).toBeNull();
  expect([rangeText({ start: 3, end: 6 }), rangeText({ start: 7, end: 8 })]).toEqual(["3-5", "7"]);
});
