/** The API's answers. */
export type State = "ok" | "failed" | "running" | "unknown";
type Text = string | null | undefined;
type Num = number | null | undefined;

export interface RunRow {
  run: string; name?: Text; note?: Text; repeats?: Text; command: string[]; line: string; cwd: string;
  started: number; ended?: Num; seconds?: Num; exit?: Num; signal?: Num; state: State; complete: boolean; lost: number;
  incomplete_because: string[]; processes: number; files_read: number; files_written: number; host: string;
  tags: Record<string, string | null>;
}
export interface StoreFacts {
  directory: string; version: string; runs: number; processes: number; edges: number; bytes: number; hosts: string[];
  scope?: Text; start?: { path?: Text; run?: Text } | null; allow_rerun: boolean;
}
export interface RunPage { runs: RunRow[]; total: number; next?: Text }
export interface Activity { start: number; end: number; step: number; bars: { start: number; runs: number; failed: number; incomplete: number }[] }
export interface RunDetail {
  summary: RunRow; warnings: string[];
  machine: { kernel?: Text; distribution?: Text; host?: Text; cpu?: Text };
  modes: Record<string, unknown>; environment: { name: string; value: string }[];
  annotations: { kind: string; key: string; value?: Text }[];
  lookups_unknown: unknown; usage?: { user: number; system: number; peak_memory: number } | null; log_bytes?: Num;
  repeated_by: RunRow[]; reasons: { sentence: string; anchor?: Text }[];
}
export interface ProcessRow {
  id: string; parent?: Text; pid: number; epoch: number; program?: Text; argv: string[]; line: string; cwd?: Text; start: number; end: number;
  exit?: Num; signal?: Num; execed: boolean; lookups_known: boolean; via: string; env_set: string[]; env_unset: string[];
}
export interface Wait { from: string; to: string; why: string; time: number }
export interface Mark { process: string; version: string; path: string; relation: string; start: number; end: number; certainty: string }
export interface UsedFile { path: string; access: string[]; via: string; certainty: string; last: number; size?: Num; own: boolean }
export interface Peer {
  address: string; process: string; line: string; connected?: boolean | null; error?: Text; serves: boolean; sent: number; received: number;
  start: number; end: number; names: { name: string; source: string }[];
}
export interface FileEvent {
  time: number; change: string; inferred: boolean; path: string; other?: Text; run?: Text; run_name?: Text;
  process?: { id: string; pid: number; program?: Text; line: string } | null; version?: Text; size?: Num; digest?: Text; kept: boolean; current: boolean;
}
export interface FileHistory { path: string; exists_now: boolean; size?: Num; modified?: Num; events: FileEvent[]; cut: boolean }
export interface Touch {
  run: string; run_name?: Text; process: string; pid: number; program?: Text; line: string; path: string; access: string[]; certainty: string;
  start: number; end: number; to: { how: string; path: string }[]; from: { how: string; path: string }[];
}
export interface Version {
  id: string; run: string; run_name?: Text; path: string; aliases: string[]; kind: string; version: number; size?: Num; modified?: Num; digest?: Text;
  kept: boolean; why_not_kept?: Text; package?: unknown; previous?: Text; last: boolean; made_by: Touch[]; own: boolean;
}
export interface Found { runs: RunRow[]; files: { path: string; versions: number }[] }
export interface NotebookOutput { media_type: string; text?: Text; base64?: Text }
export type PreviewBody =
  | { view: "text"; first: number; total: number; lines: string[]; cut: boolean }
  | { view: "table"; first: number; total: number; columns: { name: string; type?: Text }[]; rows: (string | null)[][] }
  | { view: "image"; width?: Num; height?: Num }
  | { view: "notebook"; language?: Text; cells: { kind: string; source: string; outputs: NotebookOutput[] }[]; total: number; first: number }
  | { view: "hex"; first: number; total: number; rows: { offset: number; hex: string; text: string }[] };
export interface Preview { media_type: string; size: number; views: string[]; body: PreviewBody }
export interface VersionRef { id: string; run: string; run_name?: Text; path: string; version: number; size?: Num; digest?: Text; modified?: Num }
export interface DiffHunk { a_start: number; b_start: number; lines: { mark: "both" | "removed" | "added"; text: string }[] }
export interface CellChange { row: string; column: string; a: string; b: string }
export type DiffBody =
  | { kind: "same" }
  | { kind: "text"; a_lines: number; b_lines: number; removed: number; added: number; hunks: DiffHunk[]; cut: boolean }
  | { kind: "table"; a: number; b: number; columns_removed: string[]; columns_added: string[]; columns_moved: boolean; rows_removed: number; rows_added: number; rows_changed: number; rows_moved: boolean; cells_changed: number; cells: CellChange[] }
  | { kind: "image"; a: [number, number]; b: [number, number]; differing?: Num; within?: { left: number; top: number; width: number; height: number } | null }
  | { kind: "binary"; a: number; b: number; first?: Num; differing?: Num };
export interface Difference { a: VersionRef; b: VersionRef; summary: string; body: DiffBody }
export interface FileNode { type: "file"; id: string; run: string; path: string; kind: string; version: number; size?: Num; modified?: Num; digest?: Text; kept: boolean; own: boolean; source: boolean; reach?: Text }
export interface ProcessNode { type: "process"; id: string; run: string; pid: number; epoch: number; program?: Text; line: string; cwd?: Text; start: number; end: number; reach?: Text }
export interface CommandNode { type: "command"; id: string; run: string; line: string; program?: Text; cwd?: Text; start: number; end: number; processes: number; commands: number; own: boolean }
export interface FoldNode { type: "fold"; id: string; of: string; what: string; count: number; label: string; packages: { provider: string; name: string; version?: Text; files: number }[] }
export type GraphNode = FileNode | ProcessNode | CommandNode | FoldNode;
export interface GraphLink { from: string; to: string; flow: string; relation?: Text; certainty: string; start?: Num; end?: Num }
export interface LineageAnswer { roots: string[]; level: string; direction: string; cut: boolean; nodes: GraphNode[]; links: GraphLink[]; runs: RunRow[] }
export interface FoldMembers { members: GraphNode[]; links: GraphLink[]; total: number; next?: Text }
export interface ComparedSide { title: string; run?: Text; version?: Text }
export interface RunDifference {
  kind: string; of: string; a?: Text; b?: Text; weight: string; sentence: string; after: number; one_side: boolean; versions: [Text, Text]; fed_by: number[]; intermediate: boolean;
}
export interface AlignedStep { process: string; line: string; start: number; end: number; exit?: Num }
export interface Comparison {
  a: ComparedSide; b: ComparedSide; same: boolean; earliest?: Num; differences: RunDifference[]; unknown: string[]; same_outputs: string[];
  aligned: { a?: AlignedStep | null; b?: AlignedStep | null; same: boolean }[];
}
export interface FileStatus { path: string; run?: Text; state: string; reasons: { about: string; why: string }[]; changed_inputs: { path: string; state: string }[]; mend?: Text }
export interface StatusAnswer { scope?: Text; files: FileStatus[]; outside: number; removed: number }
export interface LiveRun {
  run: string; name?: Text; command: string[]; line: string; cwd: string; started: number; seconds: number; log_bytes: number; bytes_per_second: number; records: number; records_per_second: number;
  processes: number; running: { pid: number; line: string; state: string; waits_for: string }[]; files_read: number; files_written: number;
}
