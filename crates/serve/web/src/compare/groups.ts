/** Groups the differences of two runs: causes first, consequences last. */
import type { Comparison, RunDifference } from "../api/types.ts";

export interface Group {
  id: string;
  title: string;
  /** The group is folded until the reader opens it. */
  quiet: boolean;
  differences: RunDifference[];
}

const TITLES: [weight: string, title: string, quiet: boolean][] = [
  ["own", "Your own files and the recorded command", false],
  ["command", "Commands and their environment", false],
  ["result", "Results, and how programs ended", false],
  ["system", "Programs, libraries and files of the system", true],
  ["noise", "Caches, variables of the session, and commands that only started others", true],
  ["consequence", "Consequences of the differences above", true],
];

export function groups(comparison: Pick<Comparison, "differences">): Group[] {
  const left = new Map<string, RunDifference[]>();
  for (const difference of comparison.differences) {
    // An intermediate file whose inputs differ is a consequence of those inputs.
    const weight = difference.intermediate && difference.weight === "own" && difference.fed_by.length > 0 ? "consequence" : difference.weight;
    left.set(weight, [...(left.get(weight) ?? []), difference]);
  }
  const known = TITLES.map(([id, title, quiet]) => ({ id, title, quiet, differences: left.get(id) ?? [] }));
  const others = [...left].filter(([weight]) => !TITLES.some(([id]) => id === weight)).map(([id, differences]) => ({ id, title: id, quiet: false, differences }));
  return [...known, ...others].filter((group) => group.differences.length > 0);
}

/** The subjects of the causes of which no byte is in an output. */
export function unused(comparison: Pick<Comparison, "differences">, output: RunDifference): string[] {
  return output.no_byte_of.flatMap((at) => comparison.differences[at]?.of ?? []);
}

/** A row of the two histories: one step, or a long stretch of steps without a difference. */
export type Stretch = { kind: "step"; row: Comparison["aligned"][number] } | { kind: "same"; count: number; rows: Comparison["aligned"] };

export function stretches(aligned: Comparison["aligned"]): Stretch[] {
  const result: Stretch[] = [];
  let same: Comparison["aligned"] = [];
  const flush = () => {
    if (same.length > 3) result.push({ kind: "same", count: same.length, rows: same });
    else for (const row of same) result.push({ kind: "step", row });
    same = [];
  };
  for (const row of aligned) {
    if (row.same) same.push(row);
    else {
      flush();
      result.push({ kind: "step", row });
    }
  }
  flush();
  return result;
}
