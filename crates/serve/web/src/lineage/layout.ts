/** The position of each node. Data flows from left to right. */
import dagre from "@dagrejs/dagre";
import { labels, type Graph } from "./graph.ts";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  label: string;
}

export type Layout = Map<string, Box>;

/** In a view with more nodes than this, each node is a dot, without a box. */
export const SMALL = 400;

/** The width of a character of the labels' font at 12 px. */
const CHARACTER = 7.25;

/** The width of one line of text in a label's font. */
export function textWidth(line: string): number {
  return [...line].length * CHARACTER;
}

function boxes(graph: Graph): Layout {
  const result: Layout = new Map();
  for (const [id, label] of labels(graph)) {
    const lines = label.split("\n").map(textWidth);
    result.set(id, { x: 0, y: 0, width: Math.max(48, Math.max(...lines) + 22), height: 14 + lines.length * 16, label });
  }
  return result;
}

/** Places the nodes in layers with few crossings. */
export function layered(graph: Graph): Layout {
  const result = boxes(graph);
  const drawing = new dagre.graphlib.Graph();
  drawing.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 32, edgesep: 8, marginx: 20, marginy: 20 });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const [id, box] of result) drawing.setNode(id, { width: box.width, height: box.height });
  for (const link of graph.links) if (link.from !== link.to) drawing.setEdge(link.from, link.to);
  dagre.layout(drawing);
  for (const [id, box] of result) {
    const { x, y } = drawing.node(id);
    box.x = x;
    box.y = y;
  }
  return result;
}

/**
 * Returns the layer of each node: the length of the longest path from a source. Links that close a
 * cycle do not count.
 */
function layers(graph: Graph): Map<string, number> {
  const outOf = new Map<string, string[]>();
  const open = new Map<string, number>([...graph.nodes.keys()].map((id) => [id, 0]));
  for (const { from, to } of graph.links) {
    if (from === to) continue;
    const known = outOf.get(from);
    if (known) known.push(to);
    else outOf.set(from, [to]);
    open.set(to, (open.get(to) ?? 0) + 1);
  }
  const layer = new Map<string, number>();
  const ready = [...open].filter(([, count]) => count === 0).map(([id]) => id);
  const rest = new Set(open.keys());
  while (rest.size > 0) {
    // In a cycle, no node is ready. The node with the fewest unvisited links is taken first.
    const id = ready.pop() ?? [...rest].reduce((least, other) => ((open.get(other) ?? 0) < (open.get(least) ?? 0) ? other : least));
    if (!rest.delete(id)) continue;
    const own = layer.get(id) ?? 0;
    layer.set(id, own);
    for (const next of outOf.get(id) ?? []) {
      if (!rest.has(next)) continue;
      layer.set(next, Math.max(layer.get(next) ?? 0, own + 1));
      const count = (open.get(next) ?? 1) - 1;
      open.set(next, count);
      if (count === 0) ready.push(next);
    }
  }
  return layer;
}

/** Places thousands of nodes in layers, each node near its neighbours, in linear time. */
export function spread(graph: Graph): Layout {
  const result = boxes(graph);
  const columns: string[][] = [];
  for (const [id, layer] of layers(graph)) (columns[layer] ??= []).push(id);
  const near = new Map<string, string[]>();
  for (const { from, to } of graph.links) {
    near.set(from, [...(near.get(from) ?? []).slice(-40), to]);
    near.set(to, [...(near.get(to) ?? []).slice(-40), from]);
  }
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  const place = (column: string[]) => {
    column.forEach((id, index) => {
      const box = result.get(id);
      if (box) box.y = ((index + 0.5) / column.length) * tallest;
    });
  };
  columns.forEach(place);
  const middle = (id: string) => {
    const around = near.get(id) ?? [];
    return around.length === 0 ? (result.get(id)?.y ?? 0) : around.reduce((sum, other) => sum + (result.get(other)?.y ?? 0), 0) / around.length;
  };
  for (let sweep = 0; sweep < 4; sweep += 1) {
    for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
      const at = new Map(column.map((id) => [id, middle(id)]));
      column.sort((a, b) => (at.get(a) ?? 0) - (at.get(b) ?? 0));
      place(column);
    }
  }
  // A tall layer becomes several columns, so that no dots overlap.
  const rows = Math.max(24, Math.ceil(Math.sqrt(graph.nodes.size) * 1.1));
  let x = 0;
  for (const column of columns) {
    const parts = Math.ceil(column.length / rows);
    column.forEach((id, index) => {
      const box = result.get(id);
      if (!box) return;
      box.x = x + (index % parts) * 1.5;
      box.y = -((Math.floor(index / parts) + 0.5) / Math.ceil(column.length / parts)) * rows;
    });
    x += (parts - 1) * 1.5 + 7;
  }
  return result;
}
