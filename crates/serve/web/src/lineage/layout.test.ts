import { expect, test } from "vitest";
import type { GraphNode } from "../api/types.ts";
import type { Graph } from "./graph.ts";
import { layered, spread } from "./layout.ts";

const file = (id: string): GraphNode => ({ type: "file", id, run: "r", path: `/a/${id}`, kind: "file", version: 0, kept: true, own: true, source: false, no_byte_of: [] });
const graph = (...pairs: [string, string][]): Graph => ({
  roots: new Set(["z"]),
  nodes: new Map([...new Set(pairs.flat())].map((id) => [id, file(id)])),
  links: pairs.map(([from, to]) => ({ from, to, flow: "used", certainty: "seen", start: 0, end: 1 })),
});

for (const [name, layout] of [["the small layout", layered], ["the large layout", spread]] as const) {
  test(`${name} puts every source left of what was made from it`, () => {
    const boxes = layout(graph(["a", "b"], ["b", "z"], ["a", "z"], ["c", "z"]));
    const x = (id: string) => boxes.get(id)?.x ?? Number.NaN;
    expect(x("a")).toBeLessThan(x("b"));
    expect(x("b")).toBeLessThan(x("z"));
    expect(x("c")).toBeLessThan(x("z"));
  });

  test(`${name} places a cycle, and no two nodes on each other`, () => {
    const boxes = [...layout(graph(["a", "b"], ["b", "a"], ["b", "z"], ["c", "z"])).values()];
    expect(new Set(boxes.map((box) => `${String(box.x)} ${String(box.y)}`)).size).toBe(boxes.length);
    expect(boxes.every((box) => Number.isFinite(box.x) && Number.isFinite(box.y))).toBe(true);
  });
}

test("5,000 nodes are placed", () => {
  const pairs: [string, string][] = [];
  for (let index = 1; index < 5000; index += 1) pairs.push([String(index), String(Math.floor(index / 3))]);
  expect(spread(graph(...pairs)).size).toBe(5000);
});
