/** A long content comes in portions: each holds the lines, rows or cells that follow the last. */
import type { PreviewBody } from "../api/types.ts";

/** Returns the number of lines, rows or cells. An image has none. */
export function lengthOf(body: PreviewBody): number {
  if (body.view === "text") return body.lines.length;
  if (body.view === "notebook") return body.cells.length;
  return body.view === "image" ? 0 : body.rows.length;
}

/** Returns a content with the portion that follows it. */
export function joined(body: PreviewBody, next: PreviewBody): PreviewBody {
  if (body.view === "text" && next.view === "text") return { ...body, lines: [...body.lines, ...next.lines], cut: body.cut || next.cut };
  if (body.view === "table" && next.view === "table") return { ...body, rows: [...body.rows, ...next.rows] };
  if (body.view === "notebook" && next.view === "notebook") return { ...body, cells: [...body.cells, ...next.cells] };
  if (body.view === "hex" && next.view === "hex") return { ...body, rows: [...body.rows, ...next.rows] };
  return body;
}
