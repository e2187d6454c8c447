import { expect, test } from "vitest";
import { middle, relative, sharedDirectory, split } from "./paths.ts";

test("a path has a directory and a name", () => {
  expect(split("/a/b/c.txt")).toEqual({ directory: "/a/b/", name: "c.txt" });
  expect(split("/a/b/")).toEqual({ directory: "/a/", name: "b/" });
  expect(split("c.txt")).toEqual({ directory: "", name: "c.txt" });
});

test("a path below a directory is shown from there, and no other path is", () => {
  expect(relative("/home/ada/x/y", "/home/ada")).toBe("x/y");
  expect(relative("/home/adam/x", "/home/ada")).toBe("/home/adam/x");
  expect(relative("/home/ada", "/home/ada")).toBe("/home/ada");
  expect(relative("/x", "/")).toBe("/x");
});

test("the directory that paths share ends at a slash", () => {
  expect(sharedDirectory(["/a/bc/d", "/a/bc/e/f", "/a/bd"])).toBe("/a");
  expect(sharedDirectory(["/a", "/b"])).toBe("");
});

test("a long text keeps its start and its end", () => {
  expect(middle("abcdefghij", 7)).toBe("ab…ghij");
  expect(middle("abc", 7)).toBe("abc");
  expect(middle("abcdefghij", 7, 0.3)).toBe("abcd…ij");
});
