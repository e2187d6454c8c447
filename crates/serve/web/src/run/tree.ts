/**
 * The processes of a run as bars of a time line. The bar of a process reaches from its start to
 * its end and lies below the bar of its parent. A process that outlives its parent keeps its row.
 */
import type { Mark, ProcessRow, Wait } from "../api/types.ts";

export interface Bar {
  process: ProcessRow;
  depth: number;
  /** The row in the time line. No two bars of a row overlap. */
  lane: number;
  children: Bar[];
}

/** Returns the bars in depth-first order, each parent before its children. */
export function bars(processes: readonly ProcessRow[]): Bar[] {
  const all = new Map<string, Bar>(processes.map((process) => [process.id, { process, depth: 0, lane: 0, children: [] }]));
  const roots: Bar[] = [];
  const firsts = firstParts(processes);
  for (const bar of all.values()) {
    const first = firsts.get(bar.process.id) ?? bar.process;
    const above = first.parent == null ? undefined : (firsts.get(first.parent)?.id ?? first.parent);
    const parent = above === undefined ? undefined : all.get(above);
    if (parent && parent !== bar) parent.children.push(bar);
    else roots.push(bar);
  }
  const byStart = (a: Bar, b: Bar) => a.process.start - b.process.start;
  const result: Bar[] = [];
  const visit = (top: Bar[]) => {
    const open = [...top].sort(byStart).reverse();
    for (let bar = open.pop(); bar; bar = open.pop()) {
      result.push(bar);
      for (const child of [...bar.children].sort(byStart).reverse()) {
        child.depth = bar.depth + 1;
        open.push(child);
      }
    }
  };
  visit(roots);
  // A damaged log may name a process as its own ancestor. Such a cycle has no root, so it starts at
  // any of its processes.
  const seen = new Set(result);
  for (const bar of all.values()) {
    if (!seen.has(bar)) {
      bar.children = [];
      result.push(bar);
    }
  }
  lanes(result);
  return result;
}

/**
 * Calls of functions and marks divide a program into parts. Returns the first part for each part
 * that goes on with another one. All of them have the row of the first.
 */
function firstParts(processes: readonly ProcessRow[]): Map<string, ProcessRow> {
  const known = new Map(processes.map((process) => [process.id, process]));
  const firsts = new Map<string, ProcessRow>();
  for (const process of [...processes].sort((a, b) => a.epoch - b.epoch)) {
    const before = process.parent == null ? undefined : known.get(process.parent);
    if (!before || !process.marked || before.pid !== process.pid || before.line !== process.line) continue;
    // An activity inside of it begins at once. Between it and its next part are others.
    if (process.epoch > before.epoch + 1) firsts.set(process.id, firsts.get(before.id) ?? before);
  }
  return firsts;
}

/** Assigns each bar the first free row at or below its depth. */
function lanes(all: Bar[]): void {
  const free: number[] = [];
  for (const bar of [...all].sort((a, b) => a.process.start - b.process.start || a.depth - b.depth)) {
    let lane = bar.depth;
    while ((free[lane] ?? Number.NEGATIVE_INFINITY) > bar.process.start) lane += 1;
    bar.lane = lane;
    free[lane] = bar.process.end;
  }
}

/**
 * Returns the marks of a time scale, 1, 2 or 5 times a power of ten apart, about `most` of them.
 */
export function ticks(span: number, most: number): number[] {
  if (!(span > 0)) return [0];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, index) => index * step);
}

/** One event of a process. */
export interface Moment {
  kind: "read" | "write" | "spawn" | "wait";
  time: number;
  words: string;
  /** The path, or the other process. */
  what: string;
}

const WRITING = /write|generat|creat|made|trunc|rename|delete|append/i;

/**
 * Returns the events of each process. At most 2,000 per process are kept: more would be drawn as a
 * solid bar.
 */
export function moments(marks: readonly Mark[], waits: readonly Wait[]): Map<string, Moment[]> {
  const result = new Map<string, Moment[]>();
  const add = (process: string, moment: Moment) => {
    const known = result.get(process);
    if (!known) result.set(process, [moment]);
    else if (known.length < 2000) known.push(moment);
  };
  for (const mark of marks) {
    const wrote = WRITING.test(mark.relation);
    add(mark.process, { kind: wrote ? "write" : "read", time: wrote ? mark.end : mark.start, words: wrote ? "wrote" : "read", what: mark.path });
  }
  for (const wait of waits) {
    if (wait.why === "wait") add(wait.to, { kind: "wait", time: wait.time, words: "waited for", what: wait.from });
    else if (wait.why === "fork" || wait.why === "exec") add(wait.from, { kind: "spawn", time: wait.time, words: "started", what: wait.to });
  }
  return result;
}
