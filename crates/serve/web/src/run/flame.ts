/** The processes of a run as a flame graph: siblings with the same program are one frame. */
import { hierarchy, partition } from "d3-hierarchy";
import { split } from "../text/paths.ts";
import type { Bar } from "./tree.ts";

export interface Frame {
  key: string;
  program: string;
  /** The processes that this frame represents. */
  bars: Bar[];
  /** Seconds during which the processes ran without any running child. */
  self: number;
  children: Frame[];
}

export interface PlacedFrame {
  frame: Frame;
  depth: number;
  /** From 0 to 1: a part of the width of the zoomed frame. */
  left: number;
  width: number;
  /** Returns the seconds of the frame and of all frames below it. */
  seconds: number;
}

export function programOf(bar: Bar): string {
  const { program, argv, line } = bar.process;
  return split(argv[0] ?? program ?? line).name || "unknown";
}

/** Returns the seconds of `bar` during which no child ran. */
function selfTime(bar: Bar): number {
  let covered = 0;
  let until = bar.process.start;
  for (const child of [...bar.children].sort((a, b) => a.process.start - b.process.start)) {
    const from = Math.max(until, child.process.start);
    const to = Math.min(bar.process.end, child.process.end);
    if (to > from) covered += to - from;
    until = Math.max(until, to);
  }
  return Math.max(0, bar.process.end - bar.process.start - covered);
}

function merge(siblings: readonly Bar[], above: string): Frame[] {
  const frames = new Map<string, Frame>();
  for (const bar of siblings) {
    const program = programOf(bar);
    const frame = frames.get(program) ?? { key: `${above}/${program}`, program, bars: [], self: 0, children: [] };
    frame.bars.push(bar);
    frame.self += selfTime(bar);
    frames.set(program, frame);
  }
  return [...frames.values()];
}

export function flame(roots: readonly Bar[]): Frame {
  const top: Frame = { key: "", program: "", bars: [], self: 0, children: merge(roots, "") };
  const open = [...top.children];
  for (let frame = open.pop(); frame; frame = open.pop()) {
    frame.children = merge(frame.bars.flatMap((bar) => bar.children), frame.key);
    open.push(...frame.children);
  }
  return top;
}

/**
 * Returns the frames that take at least the part `least` of the width. The frames above the zoomed
 * frame take the whole width.
 */
export function place(top: Frame, zoomed: string, least: number): PlacedFrame[] {
  const tree = partition<Frame>().size([1, 1])(
    hierarchy(top).sum((frame) => frame.self),
  );
  const chosen = tree.descendants().find((node) => node.data.key === zoomed && zoomed !== "") ?? tree;
  const span = chosen.x1 - chosen.x0 || 1;
  const result: PlacedFrame[] = [];
  for (const node of tree.descendants()) {
    if (node.depth === 0) continue;
    const above = node.x0 <= chosen.x0 && node.x1 >= chosen.x1;
    const left = above ? 0 : (node.x0 - chosen.x0) / span;
    const width = above ? 1 : (node.x1 - node.x0) / span;
    if (width < least || left < -1e-9 || left + width > 1 + 1e-9) continue;
    result.push({ frame: node.data, depth: node.depth - 1, left, width, seconds: node.value ?? 0 });
  }
  return result;
}
