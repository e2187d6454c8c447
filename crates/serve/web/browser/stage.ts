/**
 * The fixture of the browser tests: a store with real runs, and a server over it.
 *
 * The runs, in order of time:
 * - `first` and `second` of browser/project; between them the height of the station Oslo changes;
 * - `hostile`, which makes files with hostile names;
 * - `notebook`, which reads a notebook and fails.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

export interface Stage {
  program: string;
  store: string;
  project: string;
  /** The address with the token, as printed by the server. */
  url: string;
}

declare module "vitest" {
  export interface ProvidedContext {
    stage: Stage;
  }
}

/** Names that must have no effect. Bytes that are not UTF-8 are written as printf escapes. */
export const HOSTILE = ["<script>window.hacked=1<\\057script>.txt", "line\\nbreak.txt", "photo_\\342\\200\\256gpj.txt", "caf\\351.txt", "<img src=x onerror=window.hacked=1>.txt", "a&b=c#d?e.txt"].map((name) => name.replace("<\\057script>", "<script>"));

export function environment(store: string): NodeJS.ProcessEnv {
  return { ...process.env, BACKSTORY_STORE: store, PATH: "/usr/bin:/bin", HOME: process.env["HOME"] ?? "/", BACKSTORY_PAGER: "cat" };
}

export function backstory(stage: Pick<Stage, "program" | "store" | "project">, ...words: string[]): string {
  return execFileSync(stage.program, words, { cwd: stage.project, env: environment(stage.store), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Starts a server and returns it with the address that it printed. */
export async function serve(stage: Pick<Stage, "program" | "store" | "project">, ...words: string[]): Promise<{ server: ChildProcess; url: string }> {
  const server = spawn(stage.program, ["serve", "--port", "0", ...words], { cwd: stage.project, env: environment(stage.store), stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let printed = "";
    const read = (chunk: Buffer) => {
      printed += chunk.toString();
      const url = /http:\/\/\S+token=\S+/.exec(printed)?.[0];
      if (url) resolve({ server, url });
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", (status) => {
      reject(new Error(`backstory serve ended with status ${String(status)}: ${printed}`));
    });
  });
}

export default async function setup(project: TestProject): Promise<() => void> {
  const program = process.env["BACKSTORY"];
  if (!program) throw new Error("BACKSTORY must name the program to test");
  // For the documentation, a directory with an ordinary name (see scripts/page).
  const asked = process.env["BACKSTORY_STAGE"];
  if (asked) mkdirSync(asked, { recursive: true });
  const directory = asked ?? mkdtempSync(join(tmpdir(), "backstory-page-"));
  const stage: Stage = { program, store: join(directory, "store"), project: join(directory, "heights"), url: "" };
  mkdirSync(stage.project);
  cpSync(join(import.meta.dirname, "project"), stage.project, { recursive: true });

  const record = (name: string, ...command: string[]) => {
    try {
      // Contents are stored after the run has ended. Wait for them before the next run changes the
      // files.
      execFileSync(program, ["record", "--name", name, "--", ...command], { cwd: stage.project, env: environment(stage.store), stdio: "ignore" });
    } catch {
      // `record` exits with the status of its command.
    }
    backstory(stage, "index", "--wait");
  };
  record("first", "sh", "run.sh");
  const stations = join(stage.project, "stations.csv");
  writeFileSync(stations, readFileSync(stations, "utf8").replace("94", "120"));
  record("second", "sh", "run.sh");
  const names = HOSTILE.map((name) => `: >"$(printf '${name.replaceAll("%", "%%")}')"`).join("; ");
  record("hostile", "sh", "-c", `mkdir odd; cd odd; ${names}; cat * >../odd.txt`);
  record("notebook", "sh", "-c", "wc notes.ipynb; exit 3");
  const { server, url } = await serve(stage);
  stage.url = url;
  project.provide("stage", stage);
  return () => {
    server.kill("SIGTERM");
    rmSync(directory, { recursive: true, force: true });
  };
}
