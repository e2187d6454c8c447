import { expect, test } from "vitest";
import type { GraphNode } from "../api/types.ts";
import { dot, svg } from "./drawing.ts";
import type { Graph } from "./graph.ts";
import { layered } from "./layout.ts";

const HOSTILE = '/tmp/<script>alert("1")</script>\n\u202e\udcff.csv';
const file: GraphNode = { type: "file", id: "v1", run: "r", path: HOSTILE, kind: "file", version: 0, kept: true, own: true, source: true, no_byte_of: [] };
const command: GraphNode = { type: "command", id: "c1", run: "r", line: 'sh -c "a \\ b"', start: 0, end: 1, cwd: "/", processes: 1, commands: 1, own: true };
const graph: Graph = { roots: new Set(["c1"]), nodes: new Map<string, GraphNode>([["v1", file], ["c1", command]]), links: [{ from: "v1", to: "c1", flow: "used", certainty: "possible", start: 0, end: 1 }] };
const palette = { ground: "#fff", ink: "#000", line: "#888", file: "#00f", step: "#808", stepGround: "#fef", system: "#666", raised: "#eee" };

test("an exported drawing is well-formed XML, and a hostile name in it is text", () => {
  const parsed = new DOMParser().parseFromString(svg(graph, layered(graph), palette), "image/svg+xml");
  expect(parsed.querySelector("parsererror")).toBeNull();
  expect(parsed.querySelector("script")).toBeNull();
  expect(parsed.querySelector("title")?.textContent).toBe('/tmp/<script>alert("1")</script>\\n\\u{202e}\\xff.csv');
});

test("a DOT file quotes what DOT would read otherwise", () => {
  expect(dot(graph)).toContain('"c1" [label="sh -c \\"a \\\\ b\\"", shape=box, style=rounded];');
  expect(dot(graph)).toContain('"v1" -> "c1" [style=dashed];');
});

test("a drawing of dots names each node, and is well-formed XML", () => {
  const parsed = new DOMParser().parseFromString(svg(graph, layered(graph), palette, true), "image/svg+xml");
  expect(parsed.querySelector("parsererror")).toBeNull();
  expect(parsed.querySelectorAll("circle").length).toBe(2);
});
