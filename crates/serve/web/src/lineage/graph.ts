/** The visible part of a lineage: the first response, joined with the nodes opened since. */
import type { GraphLink, GraphNode, LineageAnswer } from "../api/types.ts";
import { middle, split } from "../text/paths.ts";
import { visible } from "../text/visible.ts";
import { shortLine } from "../text/words.ts";

export interface Graph {
  roots: ReadonlySet<string>;
  nodes: ReadonlyMap<string, GraphNode>;
  links: readonly GraphLink[];
}

export const EMPTY: Graph = { roots: new Set(), nodes: new Map(), links: [] };

/**
 * Names each command by its run and its start, because the id of a command is valid only within one
 * response. `asked` maps the new name to the id that the server knows.
 */
export function named<Part extends Pick<LineageAnswer, "nodes" | "links">>(part: Part, asked: Map<string, string>): Part {
  const names = new Map<string, string>();
  for (const node of part.nodes) {
    if (node.type !== "command") continue;
    const name = `${node.run} ${String(node.start)} ${node.line}`;
    names.set(node.id, name);
    asked.set(name, node.id);
  }
  const name = (id: string) => names.get(id) ?? id;
  return {
    ...part,
    nodes: part.nodes.map((node) => ({ ...node, id: name(node.id) })),
    links: part.links.map((link) => ({ ...link, from: name(link.from), to: name(link.to) })),
  };
}

const key = (link: GraphLink) => `${link.from} ${link.to} ${link.flow} ${link.certainty}`;

/** Adds a response to a graph. A node in both is left unchanged, so that it keeps its position. */
export function join(graph: Graph, answer: Pick<LineageAnswer, "nodes" | "links"> & { roots?: string[] }): Graph {
  const nodes = new Map(graph.nodes);
  for (const node of answer.nodes) if (!nodes.has(node.id)) nodes.set(node.id, node);
  const links = new Map(graph.links.map((link) => [key(link), link]));
  for (const link of answer.links) if (nodes.has(link.from) && nodes.has(link.to) && !links.has(key(link))) links.set(key(link), link);
  return { roots: new Set([...graph.roots, ...(answer.roots ?? [])]), nodes, links: [...links.values()] };
}

export function without(graph: Graph, id: string): Graph {
  const nodes = new Map(graph.nodes);
  nodes.delete(id);
  return { roots: graph.roots, nodes, links: graph.links.filter((link) => link.from !== id && link.to !== id) };
}

/** Returns the part of a graph that consists of these nodes. */
export function only(graph: Graph, kept: ReadonlySet<string>): Graph {
  return {
    roots: graph.roots,
    nodes: new Map([...graph.nodes].filter(([id]) => kept.has(id))),
    links: graph.links.filter((link) => kept.has(link.from) && kept.has(link.to)),
  };
}

/** Links two commands with a pipe between them directly. A pipe with one known end stays. */
export function withoutPipes(graph: Graph): Graph {
  const isPipe = (id: string) => {
    const node = graph.nodes.get(id);
    return node?.type === "file" && node.kind === "pipe" && !graph.roots.has(id);
  };
  const into = new Map<string, GraphLink[]>();
  const outOf = new Map<string, GraphLink[]>();
  for (const link of graph.links) {
    if (isPipe(link.to)) into.set(link.to, [...(into.get(link.to) ?? []), link]);
    if (isPipe(link.from)) outOf.set(link.from, [...(outOf.get(link.from) ?? []), link]);
  }
  const bridged = new Set([...into.keys()].filter((id) => outOf.has(id)));
  if (bridged.size === 0) return graph;
  const links = new Map<string, GraphLink>();
  const add = (link: GraphLink) => links.set(key(link), link);
  for (const link of graph.links) if (!bridged.has(link.from) && !bridged.has(link.to)) add(link);
  for (const id of bridged) {
    for (const written of into.get(id) ?? []) {
      for (const read of outOf.get(id) ?? []) {
        if (written.from === read.to) continue;
        const certainty = written.certainty === "possible" || read.certainty === "possible" ? "possible" : "seen";
        add({ from: written.from, to: read.to, flow: "informed", relation: "pipe", certainty, start: written.start, end: read.end });
      }
    }
  }
  return { roots: graph.roots, nodes: new Map([...graph.nodes].filter(([id]) => !bridged.has(id))), links: [...links.values()] };
}

export function programOf(node: GraphNode): string | null {
  if (node.type !== "command" && node.type !== "process") return null;
  return split(node.program ?? node.line.split(" ")[0] ?? "").name || null;
}

/** Returns the programs of the graph's commands and processes, most frequent first. */
export function programs(graph: Graph): string[] {
  const counts = new Map<string, number>();
  for (const node of graph.nodes.values()) {
    const program = programOf(node);
    if (program) counts.set(program, (counts.get(program) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([program]) => program);
}

/**
 * Returns the label of each node's box, in one or two lines. Files with the same name also get the
 * name of their directory.
 */
export function labels(graph: Graph): Map<string, string> {
  const names = new Map<string, Set<string>>();
  for (const node of graph.nodes.values()) {
    if (node.type !== "file") continue;
    const { name } = split(node.path);
    names.set(name, (names.get(name) ?? new Set()).add(node.path));
  }
  const result = new Map<string, string>();
  for (const node of graph.nodes.values()) {
    if (node.type === "file") {
      const { directory, name } = split(node.path);
      const ambiguous = (names.get(name)?.size ?? 0) > 1;
      result.set(node.id, middle(visible(ambiguous ? split(directory).name + name : name), 40));
    } else if (node.type === "fold") {
      // The count and the packages stand on two lines, so that a fold does not widen its layer.
      const [number, ...packages] = visible(node.label).split(": ");
      const lines = [number ?? "", ...(packages.length > 0 ? [packages.join(": ")] : [])];
      result.set(node.id, lines.map((line) => middle(line, 30)).join("\n"));
    } else result.set(node.id, middle(visible(shortLine(node.line)), 34, 0.3));
  }
  return result;
}
