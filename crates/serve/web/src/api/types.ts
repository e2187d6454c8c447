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
