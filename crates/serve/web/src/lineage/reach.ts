/**
 * Paths that respect time: along a path, each flow can have happened after the flow before it.
 *
 * A link has an interval: the earliest and the latest moment at which data can have flowed. A walk
 * against the flow carries the moment reached so far. It follows a link whose interval begins no
 * later than that moment. If the interval ends earlier, the moment moves back to that end. A walk
 * with the flow is the mirror image.
 */
import type { GraphLink } from "../api/types.ts";
import type { Graph } from "./graph.ts";

export interface Reach {
  nodes: Set<string>;
  links: Set<GraphLink>;
}

type Neighbours = Map<string, GraphLink[]>;

export interface Adjacency {
  into: Neighbours;
  outOf: Neighbours;
}

export function adjacency(graph: Graph): Adjacency {
  const into: Neighbours = new Map();
  const outOf: Neighbours = new Map();
  const add = (to: Neighbours, id: string, link: GraphLink) => {
    const known = to.get(id);
    if (known) known.push(link);
    else to.set(id, [link]);
  };
  for (const link of graph.links) {
    add(into, link.to, link);
    add(outOf, link.from, link);
  }
  return { into, outOf };
}

function follow(from: string, reach: Reach, next: (id: string) => GraphLink[], far: (link: GraphLink) => string, back: boolean): void {
  // The best moment at which each node is reached: the latest going back, the earliest going on.
  const best = new Map<string, number>([[from, back ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY]]);
  const queue = [from];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    const at = best.get(id) ?? 0;
    for (const link of next(id)) {
      if (back ? link.start > at : link.end < at) continue;
      reach.links.add(link);
      const moment = back ? Math.min(at, link.end) : Math.max(at, link.start);
      const node = far(link);
      const known = best.get(node);
      if (known !== undefined && (back ? known >= moment : known <= moment)) continue;
      best.set(node, moment);
      reach.nodes.add(node);
      queue.push(node);
    }
  }
}

/** Returns the nodes that can have influenced this node, and those that it can have influenced. */
export function reachOf(id: string, { into, outOf }: Adjacency): Reach {
  const reach: Reach = { nodes: new Set([id]), links: new Set() };
  follow(id, reach, (node) => into.get(node) ?? [], (link) => link.from, true);
  follow(id, reach, (node) => outOf.get(node) ?? [], (link) => link.to, false);
  return reach;
}

/** Returns the nodes on the paths between the roots and the nodes that match. */
export function waysThrough(graph: Graph, matches: (id: string) => boolean): Set<string> {
  const ways = adjacency(graph);
  const kept = new Set<string>();
  const fromRoots = [...graph.roots].map((root) => reachOf(root, ways).nodes);
  for (const id of graph.nodes.keys()) {
    if (!matches(id)) continue;
    const near = reachOf(id, ways).nodes;
    for (const reached of fromRoots) {
      if (!reached.has(id)) continue;
      for (const node of near) if (reached.has(node)) kept.add(node);
    }
  }
  for (const root of graph.roots) kept.add(root);
  return kept;
}
