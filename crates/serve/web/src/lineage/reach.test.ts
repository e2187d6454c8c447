import { expect, test } from "vitest";
import type { GraphLink, GraphNode } from "../api/types.ts";
import type { Graph } from "./graph.ts";
import { adjacency, reachOf, waysThrough } from "./reach.ts";

const link = (from: string, to: string, start = 0, end = 99): GraphLink => ({ from, to, flow: "used", certainty: "seen", start, end });

function graph(root: string, ...links: GraphLink[]): Graph {
  const ids = new Set(links.flatMap((each) => [each.from, each.to]));
  const nodes = new Map([...ids].map((id) => [id, { type: "fold", id, of: "", what: "system", count: 1, label: id, packages: [] } as GraphNode]));
  return { roots: new Set([root]), nodes, links };
}

const reached = (id: string, of: Graph) => [...reachOf(id, adjacency(of)).nodes].sort();

test("a file that was read after the result was written is not on its way", () => {
  const late = graph("out", link("early", "p", 1, 2), link("late", "p", 5, 6), link("p", "out", 3, 4));
  expect(reached("out", late)).toEqual(["early", "out", "p"]);
  expect(reached("late", late)).toEqual(["late", "p"]);
});

test("links that overlap in time are followed both ways", () => {
  expect(reached("b", graph("c", link("a", "b"), link("b", "c")))).toEqual(["a", "b", "c"]);
});

test("a node that is reached twice keeps its best moment", () => {
  // Through `x` the process is reached at moment 2 only; directly it is reached at moment 9.
  const two = graph("out", link("x", "out", 1, 2), link("p", "x", 1, 2), link("p", "out", 8, 9), link("in", "p", 7, 7));
  expect(reached("out", two)).toEqual(["in", "out", "p", "x"]);
});

test("a cycle of processes ends", () => {
  expect(reached("a", graph("a", link("a", "b", 1, 9), link("b", "a", 1, 9)))).toEqual(["a", "b"]);
});

test("the ways through a node hold no node beside them", () => {
  const fork = graph("out", link("a", "p", 1, 1), link("b", "q", 1, 1), link("p", "out", 2, 2), link("q", "out", 2, 2));
  expect([...waysThrough(fork, (id) => id === "p")].sort()).toEqual(["a", "out", "p"]);
  expect([...waysThrough(fork, () => false)]).toEqual(["out"]);
});
