/** The functions that wrote the chosen bytes, in the words of `of --bytes`. */
import type { ByteWriter } from "../api/types.ts";
import { sentence } from "../text/words.ts";
import { rangeText, type Span } from "./pieces.ts";

/** One line about a writer, and its first bytes. */
export interface WriterLine {
  text: string;
  span: Span | null;
}

/** The line of a writer. `null` if nothing is known of it. */
export function writerLine(writer: ByteWriter): WriterLine | null {
  if (writer.how == null) return null;
  if (writer.functions.length === 0) return { text: sentence(writer.how), span: null };
  const [start = 0, end = 0] = writer.ranges[0] ?? [];
  const more = writer.ranges.length > 1 ? " and others" : "";
  return { text: `Bytes ${rangeText({ start, end })}${more}: ${writer.how}`, span: { start, end } };
}
