/** Lines of a difference side by side: a removed line stands beside the line that replaced it. */
import type { DiffHunk } from "../api/types.ts";

export interface Side {
  number: number;
  /** A line cut into the part before the difference, the part that differs, and the part after. */
  before: string;
  changed: string;
  after: string;
}

export interface SideRow {
  a: Side | null;
  b: Side | null;
  same: boolean;
}

function whole(number: number, text: string): Side {
  return { number, before: text, changed: "", after: "" };
}

/** Returns true between the two halves of a surrogate pair, where a text must not be cut. */
function splitsPair(text: string, at: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at));
}

function pair(a: { number: number; text: string }, b: { number: number; text: string }): SideRow {
  const least = Math.min(a.text.length, b.text.length);
  let start = 0;
  while (start < least && a.text[start] === b.text[start]) start += 1;
  if (splitsPair(a.text, start) || splitsPair(b.text, start)) start -= 1;
  let end = 0;
  while (end < least - start && a.text.at(-1 - end) === b.text.at(-1 - end)) end += 1;
  if (splitsPair(a.text, a.text.length - end) || splitsPair(b.text, b.text.length - end)) end -= 1;
  const cut = ({ number, text }: { number: number; text: string }): Side => ({
    number,
    before: text.slice(0, start),
    changed: text.slice(start, text.length - end),
    after: text.slice(text.length - end),
  });
  return { a: cut(a), b: cut(b), same: false };
}

export function sides(hunk: DiffHunk): SideRow[] {
  const rows: SideRow[] = [];
  let removed: { number: number; text: string }[] = [];
  let added: { number: number; text: string }[] = [];
  let a = hunk.a_start;
  let b = hunk.b_start;
  const flush = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      const left = removed[index];
      const right = added[index];
      if (left && right) rows.push(pair(left, right));
      else rows.push({ a: left ? whole(left.number, left.text) : null, b: right ? whole(right.number, right.text) : null, same: false });
    }
    removed = [];
    added = [];
  };
  for (const line of hunk.lines) {
    if (line.mark === "removed") {
      // A removal after an addition begins a new group.
      if (added.length > 0) flush();
      removed.push({ number: a++, text: line.text });
    } else if (line.mark === "added") added.push({ number: b++, text: line.text });
    else {
      flush();
      rows.push({ a: whole(a++, line.text), b: whole(b++, line.text), same: true });
    }
  }
  flush();
  return rows;
}
