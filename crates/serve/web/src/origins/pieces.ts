/**
 * Rows of a part of a content, and the pieces of a row that are lit.
 *
 * A text has a row for each line, anything else one for 16 bytes. Offsets count the bytes of the
 * whole content; `end` is behind the last byte.
 */
export interface Span {
  start: number;
  end: number;
}

/** Bytes of the content that are lit, and in which way. */
export interface Lit extends Span {
  kind: "chosen" | "copied" | "computed" | "implicit";
}

/** A part of a content. */
export interface Excerpt {
  /** The offset of its first byte. */
  from: number;
  bytes: Uint8Array;
}

/** The most bytes of a content that are shown at once. */
export const MOST = 1 << 20;

/**
 * The offset from which an excerpt with a byte is shown. The excerpt has at least a quarter of its
 * bytes before and behind that byte, and stays the same for bytes nearby.
 */
export function excerptStart(byte: number): number {
  const quarter = MOST / 4;
  return byte < 3 * quarter ? 0 : Math.floor(byte / (2 * quarter)) * 2 * quarter - quarter;
}

export interface Piece extends Span {
  text: string;
  kind: Lit["kind"] | null;
}

const WIDTH = 16;
/** Bytes between these stand together: a cell of a table, or a word. */
const SEPARATORS = new Set([..." ,;\t\n|"].map((each) => each.charCodeAt(0)));

export function isText(content: Uint8Array): boolean {
  return !content.includes(0);
}

export function rowsOf({ from, bytes }: Excerpt): Span[] {
  const rows: Span[] = [];
  const text = isText(bytes);
  for (let start = 0; start < bytes.length; ) {
    const line = text ? bytes.indexOf(10, start) + 1 || bytes.length : Math.min(start + WIDTH, bytes.length);
    rows.push({ start: from + start, end: from + line });
    start = line;
  }
  return rows;
}

/** The number of the row with a byte. */
export function rowAt(rows: readonly Span[], byte: number): number {
  let low = 0;
  let high = rows.length;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.start ?? 0) <= byte) low = middle;
    else high = middle;
  }
  return low;
}

function words({ from, bytes }: Excerpt, row: Span, cuts: Set<number>): void {
  for (let at = row.start; at < row.end; at += 1) {
    const here = SEPARATORS.has(bytes[at - from] ?? 0);
    const before = at > row.start && SEPARATORS.has(bytes[at - from - 1] ?? 0);
    if (here || before) cuts.add(at);
  }
}

function shown({ from, bytes }: Excerpt, span: Span, text: boolean): string {
  const part = bytes.subarray(span.start - from, span.end - from);
  if (text) return new TextDecoder("utf-8", { ignoreBOM: true }).decode(part).replace(/\n$/, "↵");
  return [...part].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

/** The pieces of a row: its words, cut where something begins or ends to be lit. */
export function pieces(content: Excerpt, row: Span, lit: readonly Lit[], text: boolean): Piece[] {
  const cuts = new Set([row.start, row.end]);
  if (text) words(content, row, cuts);
  const here = lit.filter((each) => each.start < row.end && each.end > row.start);
  for (const each of here) for (const at of [each.start, each.end]) if (at > row.start && at < row.end) cuts.add(at);
  const ends = [...cuts].sort((a, b) => a - b);
  return ends.slice(0, -1).map((start, index) => {
    const span = { start, end: ends[index + 1] ?? row.end };
    // The strongest kind comes first in the list.
    const kind = here.find((each) => each.start <= start && each.end >= span.end)?.kind ?? null;
    return { ...span, text: shown(content, span, text), kind };
  });
}

/** Reads `A-B`, with the last byte. Returns `null` if the text is no range. */
export function range(text: string): Span | null {
  const found = /^(\d+)(?:-(\d+))?$/.exec(text);
  if (!found) return null;
  const start = Number(found[1]);
  const last = found[2] === undefined ? start : Number(found[2]);
  return last < start ? null : { start, end: last + 1 };
}

export function rangeText(span: Span): string {
  return span.end - span.start <= 1 ? String(span.start) : `${String(span.start)}-${String(span.end - 1)}`;
}
