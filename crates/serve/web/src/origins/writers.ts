/** The functions that wrote the chosen bytes, in the words of `of --bytes`. */
import type { ByteWriter } from "../api/types.ts";
import { rangeText } from "./pieces.ts";

/** The most functions of a write, and calls, that are named. */
const NAMED = 3;

/** One line about a writer. Empty if nothing is known of it. */
export function writerText(writer: ByteWriter): string {
  const calls = callsText(writer.calls);
  // Functions without debugging information are mostly those of an interpreter or a library.
  const known = writer.functions.filter((each) => each.file !== "").slice(0, NAMED);
  const chain = known.map((each) => `${each.name.endsWith(")") ? each.name : `${each.name}()`} in ${each.file}:${String(each.line ?? 0)}`).join(", called by ");
  if (writer.functions.length === 0) return calls && `Possibly written in ${calls}`;
  const by = [chain && `by ${chain}`, calls && `in ${calls}`].filter((text) => text !== "").join(", ");
  const [start = 0, end = 0] = writer.ranges[0] ?? [];
  const more = writer.ranges.length > 1 ? " and others" : "";
  return by && `Bytes ${rangeText({ start, end })}${more}: written ${by}`;
}

function callsText(calls: readonly string[]): string {
  const named = calls.slice(0, NAMED).join("; ");
  if (calls.length === 0) return "";
  return calls.length === 1 ? `the recorded call ${named}` : `one of ${String(calls.length)} recorded calls: ${named}`;
}
