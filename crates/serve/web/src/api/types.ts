/** The API's response types under the page's names. The types are generated: `npm run types`. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type State = Schemas["RunState"];
export type RunRow = Schemas["RunRow"];
export type StoreFacts = Schemas["StoreInfo"];
export type RunPage = Schemas["RunPage"];
export type Activity = Schemas["RunActivity"];
export type ReplayRow = Schemas["ReplayRow"];
export type RunDetail = Schemas["RunView"];
export type NoteRow = Schemas["NoteRow"];
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

export type Found = Schemas["SearchResult"];
export type FileNode = Schemas["FileNode"];
export type ProcessNode = Schemas["ProcessNode"];
export type CommandNode = Schemas["CommandNode"];
export type FoldNode = Schemas["FoldNode"];
export type GraphNode = Schemas["GraphNode"];
export type GraphLink = Schemas["GraphLink"];
export type LineageAnswer = Schemas["LineageView"];
export type FoldMembers = Schemas["FoldPage"];
export type ComparedSide = Schemas["ComparedSubject"];
export type RunDifference = Schemas["DifferenceRow"];
export type AlignedStep = Schemas["AlignedCommand"];
export type Comparison = Schemas["ComparisonView"];
export type FileStatus = Schemas["StatusRow"];
export type StatusAnswer = Schemas["StatusList"];
export type LiveRun = Schemas["LiveRun"];
export type LiveList = Schemas["LiveList"];
