import { expect, test } from "vitest";
import type { GraphNode } from "../api/types.ts";
import { fitted, onScreen } from "./camera.ts";
import { asDots, dotAt, labelled, type Dot } from "./dots.ts";
import type { Graph } from "./graph.ts";
import { spread } from "./layout.ts";

const file = (id: string): GraphNode => ({ type: "file", id, run: "r", path: `/a/${id}`, kind: "file", version: 0, kept: true, own: true, source: false, no_byte_of: [] });
const ids = Array.from({ length: 900 }, (_, index) => `file${String(index)}`);
const graph: Graph = {
  roots: new Set(["file0"]),
  nodes: new Map(ids.map((id) => [id, file(id)])),
  links: ids.slice(1).map((to) => ({ from: "file0", to, flow: "used", certainty: "seen", start: 0, end: 1 })),
};
const layout = spread(graph);
const dots = asDots(graph, layout);
const size = { width: 1200, height: 600 };

test("each dot is found at its place, and none beside the graph", () => {
  const camera = fitted(layout, size);
  for (const dot of dots.byId.values()) expect(dotAt(dots, camera, size, 1, onScreen(camera, size, dot))?.id).toBe(dot.id);
  expect(dotAt(dots, camera, size, 1, { x: 2, y: 2 })).toBeNull();
});

test("labels do not cover each other, and the root has one", () => {
  const { scale } = fitted(layout, size);
  const shown = labelled(dots, scale * 9, 9);
  expect(shown[0]?.id).toBe("file0");
  expect(shown.length).toBeGreaterThan(50);
  const covers = (one: Dot, other: Dot) =>
    Math.abs(one.x - other.x) * scale * 9 < 7 * Math.min(one.label.length, other.label.length) && Math.abs(one.y - other.y) * scale * 9 < 12;
  expect(shown.filter((one, index) => shown.slice(index + 1).some((other) => covers(one, other)))).toEqual([]);
});

test("a chosen dot has its label before all others", () => {
  const { scale } = fitted(layout, size);
  expect(labelled(dots, scale, 1).map((dot) => dot.id)).toEqual(["file0"]);
  expect(labelled(dots, scale, 1, new Set(["file77"]))[0]?.id).toBe("file77");
});
