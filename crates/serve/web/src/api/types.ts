/** The API's answers, by the page's names. Their shapes are generated: `npm run types`. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type State = Schemas["RunState"];
export type RunRow = Schemas["RunRow"];
export type StoreFacts = Schemas["StoreInfo"];
export type RunPage = Schemas["RunPage"];
export type Activity = Schemas["RunActivity"];
export type RunDetail = Schemas["RunView"];
export type ProcessRow = Schemas["ProcessRow"];
export type Wait = Schemas["WaitRow"];
export type Mark = Schemas["MarkRow"];
export type UsedFile = Schemas["RunFileRow"];
export type Peer = Schemas["PeerRow"];
export type FileEvent = Schemas["FileEvent"];
export type FileHistory = Schemas["FileView"];
export type Touch = Schemas["TouchRow"];
export type Version = Schemas["VersionView"];
export type NotebookOutput = Schemas["CellOutput"];
export type PreviewBody = Schemas["ContentBody"];
export type Preview = Schemas["ContentView"];
export type VersionRef = Schemas["VersionName"];
export type DiffHunk = Schemas["HunkRow"];
export type CellChange = Schemas["CellRow"];
export type DiffBody = Schemas["DifferenceBody"];
export type Difference = Schemas["DifferenceView"];

type Text = string | null | undefined;
type Num = number | null | undefined;

export interface Found { runs: RunRow[]; files: { path: string; versions: number }[] }
export interface FileNode { type: "file"; id: string; run: string; path: string; kind: string; version: number; size?: Num; modified?: Num; digest?: Text; kept: boolean; own: boolean; source: boolean; reach?: Text }
export interface ProcessNode { type: "process"; id: string; run: string; pid: number; epoch: number; program?: Text; line: string; cwd?: Text; start: number; end: number; reach?: Text }
export interface CommandNode { type: "command"; id: string; run: string; line: string; program?: Text; cwd?: Text; start: number; end: number; processes: number; commands: number; own: boolean }
export interface FoldNode { type: "fold"; id: string; of?: Text; what: string; count: number; label: string; packages: { provider: string; name: string; version?: Text; files: number }[] }
export type GraphNode = FileNode | ProcessNode | CommandNode | FoldNode;
export interface GraphLink { from: string; to: string; flow: string; relation?: Text; certainty: string; start: number; end: number }
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
  run: string; name?: Text; command: string[]; line: string; cwd: string; started: number; log_bytes: number; bytes_per_second: number; records: number; records_per_second: number;
  running: { pid: number; line: string; state: string; waits_for?: Text }[];
}
