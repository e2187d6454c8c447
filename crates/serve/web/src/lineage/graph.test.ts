import { expect, test } from "vitest";
import type { GraphLink, GraphNode } from "../api/types.ts";
import { EMPTY, join, labels, named, withoutPipes } from "./graph.ts";

const command = (id: string): GraphNode => ({ type: "command", id, run: "r", line: id, cwd: "/", start: 0, end: 1, processes: 1, commands: 1, own: true });
const file = (id: string, path: string, kind = "file"): GraphNode => ({ type: "file", id, run: "r", path, kind, version: 0, kept: true, own: true, source: false, no_byte_of: [] });
const link = (from: string, to: string, certainty = "seen"): GraphLink => ({ from, to, flow: "used", certainty, start: 1, end: 2 });

test("two commands with a pipe between them are linked directly", () => {
  const graph = withoutPipes(join(EMPTY, { nodes: [command("a"), file("p", "pipe:1", "pipe"), command("b"), file("q", "pipe:2", "pipe")], links: [link("a", "p"), link("p", "b", "possible"), link("q", "b")] }));
  expect([...graph.nodes.keys()]).toEqual(["a", "b", "q"]);
  expect(graph.links.map((each) => [each.from, each.to, each.certainty])).toEqual([["q", "b", "seen"], ["a", "b", "possible"]]);
});

test("what was seen already keeps its place, and a link without its ends is left out", () => {
  const first = join(EMPTY, { nodes: [command("a")], links: [], roots: ["a"] });
  const second = join(first, { nodes: [{ ...command("a"), line: "other" } as GraphNode, command("b")], links: [link("a", "b"), link("a", "b"), link("b", "gone")] });
  expect(second.nodes.get("a")).toBe(first.nodes.get("a"));
  expect(second.links.length).toBe(1);
  expect([...second.roots]).toEqual(["a"]);
});

test("files with the same name are told apart by their directory", () => {
  const made = labels(join(EMPTY, { nodes: [file("1", "/x/a/__init__.py"), file("2", "/x/b/__init__.py"), file("3", "/x/c.py")], links: [] }));
  expect([...made.values()]).toEqual(["a/__init__.py", "b/__init__.py", "c.py"]);
});

test("two commands with the same id in two answers stay two", () => {
  const asked = new Map<string, string>();
  const one = named({ nodes: [command("c1")], links: [] }, asked);
  const other = named({ nodes: [{ ...command("c1"), start: 5 } as GraphNode, file("v", "/v")], links: [link("v", "c1")] }, asked);
  const graph = join(join(EMPTY, one), other);
  expect(graph.nodes.size).toBe(3);
  expect(asked.get(graph.links[0]?.to ?? "")).toBe("c1");
  expect(graph.links[0]?.to).toBe(other.nodes[0]?.id);
});
