import { expect, test } from "vitest";
import { highlight, languageOf } from "./highlight.ts";

const text = (path: string, lines: string[]) => highlight(lines, path).map((line) => line.map((token) => token.text).join(""));

test("highlighted text is the same text, line by line", () => {
  const lines = ["def f(x):", '    """two', '    lines <b>"""', "", "    return x & 1  # <script>"];
  expect(text("a.py", lines)).toEqual(lines);
});

test("a keyword and a comment have their scope", () => {
  const [first, second] = highlight(["import os", "# hello"], "a.py");
  expect(first?.[0]).toEqual({ text: "import", scope: "keyword" });
  expect(second?.[0]).toEqual({ text: "# hello", scope: "comment" });
});

test("the language is known by ending, name or first line", () => {
  expect([languageOf("/a/Makefile", ""), languageOf("x.tex", ""), languageOf("run", "#!/usr/bin/env python3"), languageOf("run", "#!/bin/sh"), languageOf("data", "1 2")]).toEqual([
    "makefile", "latex", "python", "bash", null,
  ]);
});

test("a text of no known language stays plain", () => {
  expect(highlight(["a < b"], "x.unknown")).toEqual([[{ text: "a < b", scope: "" }]]);
});
