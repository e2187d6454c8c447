/** The large graph as dots and lines. In: the graph and its layout. Out: what a canvas draws. */
import type { GraphLink } from "../api/types.ts";
import type { Camera, Place, Size } from "./camera.ts";
import { onScreen } from "./camera.ts";
import type { Graph } from "./graph.ts";
import { textWidth, type Layout } from "./layout.ts";

export type Tone = "own" | "system" | "step";

export interface Dot extends Place {
  id: string;
  /** The radius in pixels when all of the graph is seen. */
  radius: number;
  tone: Tone;
  label: string;
  root: boolean;
}

export interface Line {
  link: GraphLink;
  from: Dot;
  to: Dot;
}

export interface Dots {
  byId: ReadonlyMap<string, Dot>;
  lines: readonly Line[];
}

export function asDots(graph: Graph, layout: Layout): Dots {
  const byId = new Map<string, Dot>();
  const shrink = graph.nodes.size > 1500 ? 0.55 : 1;
  for (const [id, node] of graph.nodes) {
    const box = layout.get(id);
    if (!box) continue;
    const root = graph.roots.has(id);
    const own = node.type === "file" && node.own;
    const step = node.type === "command" || node.type === "process";
    // Many roots, as the versions of a library, would hide each other.
    const radius = root && graph.roots.size <= 20 ? 7 : shrink * (root || step ? 4.5 : own ? 4 : 2.5);
    byId.set(id, { id, x: box.x, y: box.y, radius, tone: step ? "step" : own ? "own" : "system", label: box.label.replaceAll("\n", " "), root });
  }
  const lines = graph.links.flatMap((link) => {
    const from = byId.get(link.from);
    const to = byId.get(link.to);
    return from && to ? [{ link, from, to }] : [];
  });
  return { byId, lines };
}

/** The radius on the screen: dots grow more slowly than the distances between them. */
export function grown(radius: number, zoom: number): number {
  return radius * Math.sqrt(zoom);
}

/** The dot nearest to the pointer, if it is under it. A small dot is hit from 5 pixels away. */
export function dotAt(dots: Dots, camera: Camera, size: Size, zoom: number, pointer: Place): Dot | null {
  let best: Dot | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const dot of dots.byId.values()) {
    const { x, y } = onScreen(camera, size, dot);
    const far = Math.hypot(x - pointer.x, y - pointer.y);
    if (far < least && far <= Math.max(grown(dot.radius, zoom), 4) + 1) {
      best = dot;
      least = far;
    }
  }
  return best;
}

const ROW = 15;
/** A dot this large, in pixels, has a label where there is room. */
const LABELLED = 5;

/**
 * The dots whose labels have room, with the most important first in line. The choice depends on the
 * scale alone, not on the part that is seen: no label comes or goes while the picture is moved.
 */
export function labelled(dots: Dots, scale: number, zoom: number, first: ReadonlySet<string> = new Set()): Dot[] {
  const rank = (dot: Dot) => (first.has(dot.id) ? 0 : dot.root ? 1 : dot.tone === "own" ? 2 : dot.tone === "step" ? 3 : 4);
  const wanted = [...dots.byId.values()].filter((dot) => first.has(dot.id) || dot.root || grown(dot.radius, zoom) >= LABELLED);
  wanted.sort((a, b) => rank(a) - rank(b));
  const rows = new Map<number, [number, number][]>();
  return wanted.filter((dot) => {
    const left = dot.x * scale + grown(dot.radius, zoom);
    const right = left + textWidth(dot.label) + 10;
    const row = Math.round((dot.y * scale) / ROW);
    const near = [row - 1, row, row + 1].flatMap((each) => rows.get(each) ?? []);
    if (near.some(([from, to]) => left < to && right > from)) return false;
    rows.set(row, [...(rows.get(row) ?? []), [left, right]]);
    return true;
  });
}
