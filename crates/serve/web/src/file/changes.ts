/** Words for the events of a file. */
import type { FileEvent, Inside } from "../api/types.ts";

const WORDS: Record<string, string> = {
  made: "made",
  changed: "changed",
  renamed_from: "renamed",
  renamed_to: "renamed",
  deleted: "deleted",
  metadata: "mode or times changed",
  found: "first seen",
  changed_unseen: "changed, not recorded",
  moved_unseen: "moved, not recorded",
  gone_unseen: "gone, not recorded",
};

export function changeWords(event: Pick<FileEvent, "change">): string {
  return WORDS[event.change] ?? event.change.replaceAll("_", " ");
}

export type Tone = "made" | "seen" | "gone" | "outside";

export function toneOf(event: Pick<FileEvent, "change">): Tone {
  if (event.change.endsWith("_unseen")) return "outside";
  if (event.change === "deleted" || event.change === "renamed_to") return "gone";
  return event.change === "found" || event.change === "metadata" ? "seen" : "made";
}

/** Returns each version that the events name once, newest first, with the event that made it. */
export function versionsOf(events: readonly FileEvent[]): { id: string; event: FileEvent }[] {
  const versions = new Map<string, FileEvent>();
  for (const event of events) {
    if (!event.version) continue;
    const known = versions.get(event.version);
    // The event that made the version is more specific than a later change of its name or mode.
    if (!known || toneOf(event) === "made") versions.set(event.version, event);
  }
  return [...versions].map(([id, event]) => ({ id, event }));
}

/** The most sentences of an inspector that stand in one line. */
const SENTENCES = 3;

/** Returns what an inspector says about a version, in one line. `null` if it says nothing. */
export function insideLine(inside: Pick<Inside, "sentences">): string | null {
  const { sentences } = inside;
  if (sentences.length === 0) return null;
  return sentences.slice(0, SENTENCES).join(", ") + (sentences.length > SENTENCES ? ", …" : "");
}
