/** Moves between the nodes of the graph by arrow keys. */
import type { Layout } from "./layout.ts";
import type { Adjacency } from "./reach.ts";

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

/**
 * Left moves to a node that data came from, right to a node that data went to. Of several nodes,
 * the nearest in height is taken; nodes for which `last` is true come after all others. Up and
 * down move to the next node of the same layer.
 */
export function neighbour(id: string, arrow: Arrow, ways: Adjacency, layout: Layout, last: (id: string) => boolean = () => false): string | null {
  const here = layout.get(id);
  if (!here) return null;
  const nearest = (ids: Iterable<string>, distance: (x: number, y: number) => number): string | null => {
    let best: string | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (const other of ids) {
      const box = layout.get(other);
      if (!box || other === id) continue;
      const far = distance(box.x - here.x, box.y - here.y) + (last(other) ? 1e6 : 0);
      if (far < least) {
        least = far;
        best = other;
      }
    }
    return best;
  };
  if (arrow === "ArrowLeft") return nearest((ways.into.get(id) ?? []).map((link) => link.from), (_, y) => Math.abs(y));
  if (arrow === "ArrowRight") return nearest((ways.outOf.get(id) ?? []).map((link) => link.to), (_, y) => Math.abs(y));
  const sign = arrow === "ArrowDown" ? 1 : -1;
  return nearest(layout.keys(), (x, y) => (y * sign > 0 ? Math.abs(y) + Math.abs(x) * 3 : Number.POSITIVE_INFINITY));
}
