/**
 * Takes the pictures of the documentation: each view in light and dark.
 *
 * usage: npm run pictures -- PROGRAM HOME DIRECTORY
 *
 * - PROGRAM: the backstory to show;
 * - HOME: a directory whose path the pictures show (/home/ada); the program empties it;
 * - DIRECTORY: the directory to which the pictures are written.
 *
 * Records the project of the tests.
 */
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";

const [program, home, directory] = process.argv.slice(2);
if (!program || !home || !directory) {
  console.error("usage: npm run pictures -- PROGRAM HOME DIRECTORY");
  process.exit(2);
}
const project = join(home, "heights");
const store = join(home, ".local/share/backstory");
rmSync(project, { recursive: true, force: true });
rmSync(store, { recursive: true, force: true });
mkdirSync(project, { recursive: true });
cpSync(join(import.meta.dirname, "../browser/project"), project, { recursive: true });
const env = { PATH: "/usr/bin:/bin", HOME: home, LANG: "C.UTF-8", BACKSTORY_STORE: store, BACKSTORY_PAGER: "cat" };
const options = { cwd: project, env };

function record(name: string, ...command: string[]): string {
  try {
    execFileSync(program ?? "", ["record", "--name", name, "--", ...command], { ...options, stdio: "ignore" });
  } catch {
    // `record` exits with the status of its command.
  }
  execFileSync(program ?? "", ["index", "--wait"], { ...options, stdio: "ignore" });
  return (JSON.parse(execFileSync(program ?? "", ["show", name, "--json"], { ...options, encoding: "utf8" })) as { run: string }).run;
}

async function serve(): Promise<{ server: ChildProcess; url: string }> {
  const server = spawn(program ?? "", ["serve"], { ...options, stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve) => {
    server.stdout.on("data", (line: Buffer) => {
      resolve({ server, url: line.toString().trim() });
    });
  });
}

const first = record("first", "sh", "run.sh");
const stations = join(project, "stations.csv");
writeFileSync(stations, readFileSync(stations, "utf8").replace("94", "120"));
const second = record("second", "sh", "run.sh");
record("check", "sh", "-c", "wc notes.ipynb; exit 3");
try {
  execFileSync(program, ["replay", second], { ...options, stdio: "ignore" });
} catch {
  // A replay whose outputs differ exits with status 1.
}
appendFileSync(stations, "Bodø,13,North\n");
const { server, url } = await serve();
const live = spawn(program, ["record", "--name", "nightly", "--", "sh", "-c", "(sleep 600 & python3 -c 'import time; time.sleep(600)' & read line; kill $!)"], { ...options, stdio: ["pipe", "ignore", "ignore"] });
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"],
});

const at = (name: string): string => encodeURI(join(project, name));
/** Each picture: the address of the view, and the actions before the picture is taken. */
const views: [string, string, ((page: Page) => Promise<void>)?][] = [
  ["runs", "/"],
  ["file", `/file?path=${at("clean.csv")}`],
  ["difference", `/file?path=${at("clean.csv")}&tab=difference`],
  ["images", `/file?path=${at("picture.png")}&tab=difference`],
  ["lineage", `/lineage?path=${at("count.txt")}`],
  ["run", `/run/${second}`],
  ["processes", `/run/${second}?tab=processes`, (page) => page.getByRole("listbox", { name: /Processes over time/ }).getByText("picture.py").click()],
  ["flame", `/run/${second}?tab=processes&as=flame`],
  ["repeats", `/run/${second}?tab=repeats`],
  ["compare", `/compare?a=${first}&b=${second}`],
  ["status", "/status"],
  ["live", "/live"],
];
for (const scheme of ["light", "dark"] as const) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(url);
  for (const [name, address, act] of views) {
    await page.goto(new URL(address, url).href);
    await page.waitForSelector("main h1");
    await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => undefined);
    await act?.(page);
    await page.waitForTimeout(700);
    await page.screenshot({ path: join(directory, `${name}${scheme === "dark" ? "-dark" : ""}.png`) });
  }
  await context.close();
}
await browser.close();
live.stdin.end("end\n");
live.kill("SIGTERM");
server.kill("SIGTERM");
