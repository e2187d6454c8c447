import type { RunRow } from "../api/types.ts";

export interface Ending {
  tone: "good" | "bad" | "warn" | "busy" | "quiet";
  text: string;
  title: string;
}

const SIGNALS: Record<number, string> = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
};

export function signalName(signal: number): string {
  return SIGNALS[signal] ?? `signal ${String(signal)}`;
}

/** Returns the end of a run in one or two words. */
export function ending(run: Pick<RunRow, "state" | "exit" | "signal" | "complete" | "incomplete_because">): Ending {
  if (run.state === "running") return { tone: "busy", text: "running", title: "The command has not ended yet." };
  const missing = run.complete ? "" : run.incomplete_because.join("\n");
  if (run.signal != null) return { tone: "bad", text: signalName(run.signal), title: `The command was ended by a signal.\n${missing}`.trim() };
  if (run.exit != null && run.exit !== 0) return { tone: "bad", text: `exit ${String(run.exit)}`, title: `The command ended with status ${String(run.exit)}.\n${missing}`.trim() };
  if (run.state === "unknown" || run.exit == null) return { tone: "quiet", text: "unknown", title: `How the command ended is not known.\n${missing}`.trim() };
  return run.complete ? { tone: "good", text: "ok", title: "The command ended with status 0." } : { tone: "warn", text: "incomplete", title: missing };
}
