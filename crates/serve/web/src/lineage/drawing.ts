/** Exports the visible graph as SVG and DOT. */
import type { GraphLink, GraphNode } from "../api/types.ts";
import { visible } from "../text/visible.ts";
import type { Graph } from "./graph.ts";
import type { Layout } from "./layout.ts";

export interface Palette {
  ground: string;
  ink: string;
  line: string;
  file: string;
  step: string;
  stepGround: string;
  system: string;
  raised: string;
}

const xml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export function fullLabel(node: GraphNode): string {
  return visible(node.type === "file" ? node.path : node.type === "fold" ? node.label : node.line);
}

function curve(link: GraphLink, layout: Layout): string | null {
  const from = layout.get(link.from);
  const to = layout.get(link.to);
  if (!from || !to) return null;
  const x1 = from.x + from.width / 2;
  const x2 = to.x - to.width / 2 - 4;
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1.toFixed(1)} ${from.y.toFixed(1)} C${(x1 + bend).toFixed(1)} ${from.y.toFixed(1)} ${(x2 - bend).toFixed(1)} ${to.y.toFixed(1)} ${x2.toFixed(1)} ${to.y.toFixed(1)}`;
}

/** Pixels per unit of the large view's layout, in which neighbours are one unit apart. */
const DOT = 12;

function asDots(layout: Layout): Layout {
  return new Map([...layout].map(([id, box]) => [id, { ...box, x: box.x * DOT, y: -box.y * DOT, width: 8, height: 8 }]));
}

/**
 * Draws the graph. With `dots`, `seen` is the large view's layout: nodes become dots with a title.
 */
export function svg(graph: Graph, seen: Layout, palette: Palette, dots = false): string {
  const layout = dots ? asDots(seen) : seen;
  const boxes = [...layout].filter(([id]) => graph.nodes.has(id)).map(([, box]) => box);
  const left = Math.min(...boxes.map((box) => box.x - box.width / 2)) - 20;
  const right = Math.max(...boxes.map((box) => box.x + box.width / 2)) + 20;
  const top = Math.min(...boxes.map((box) => box.y - box.height / 2)) - 20;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height / 2)) + 20;
  const size = `${(right - left).toFixed(0)} ${(bottom - top).toFixed(0)}`;
  const [width, height] = size.split(" ");
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width ?? ""}" height="${height ?? ""}" viewBox="${left.toFixed(0)} ${top.toFixed(0)} ${size}" font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="12">`,
    `<rect x="${left.toFixed(0)}" y="${top.toFixed(0)}" width="100%" height="100%" fill="${palette.ground}"/>`,
    `<defs><marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="${palette.line}"/></marker></defs>`,
  ];
  for (const link of graph.links) {
    const path = curve(link, layout);
    if (path) parts.push(`<path d="${path}" fill="none" stroke="${palette.line}"${link.certainty === "possible" ? ' stroke-dasharray="4 3"' : ""} marker-end="url(#arrow)"/>`);
  }
  for (const [id, node] of graph.nodes) {
    const box = layout.get(id);
    if (!box) continue;
    const own = node.type === "file" && node.own;
    const stroke = node.type === "file" ? (own ? palette.file : palette.system) : node.type === "fold" ? palette.system : palette.step;
    const fill = node.type === "file" ? palette.ground : node.type === "fold" ? palette.raised : palette.stepGround;
    if (dots) {
      parts.push(`<circle cx="${box.x.toFixed(1)}" cy="${box.y.toFixed(1)}" r="${graph.roots.has(id) ? "7" : "4"}" fill="${stroke}"><title>${xml(fullLabel(node))}</title></circle>`);
      continue;
    }
    parts.push(
      `<g><title>${xml(fullLabel(node))}</title><rect x="${(box.x - box.width / 2).toFixed(1)}" y="${(box.y - box.height / 2).toFixed(1)}" width="${box.width.toFixed(1)}" height="${String(box.height)}" rx="${node.type === "file" ? "3" : "9"}" fill="${fill}" stroke="${stroke}" stroke-width="${graph.roots.has(id) ? "2.5" : "1.2"}"${node.type === "fold" ? ' stroke-dasharray="3 3"' : ""}/>`,
      ...box.label.split("\n").map((line, index, lines) => {
        const y = box.y + 4 + (index - (lines.length - 1) / 2) * 15;
        return `<text x="${box.x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="middle" fill="${own || node.type !== "file" ? palette.ink : palette.system}">${xml(line)}</text>`;
      }),
      "</g>",
    );
  }
  parts.push("</svg>\n");
  return parts.join("\n");
}

const dotString = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

export function dot(graph: Graph): string {
  const lines = ["digraph lineage {", "  rankdir=LR;", '  node [fontname="monospace", fontsize=10];'];
  for (const [id, node] of graph.nodes) {
    const shape = node.type === "file" ? "box" : node.type === "fold" ? "note" : "box, style=rounded";
    lines.push(`  ${dotString(id)} [label=${dotString(fullLabel(node))}, shape=${shape}];`);
  }
  for (const link of graph.links) {
    lines.push(`  ${dotString(link.from)} -> ${dotString(link.to)}${link.certainty === "possible" ? " [style=dashed]" : ""};`);
  }
  return `${lines.join("\n")}\n}\n`;
}
