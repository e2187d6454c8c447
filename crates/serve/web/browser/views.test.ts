// Each view shows the facts of real runs, and links to the next view.
import { appendFileSync } from "node:fs";
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { keep, launch, reader, type Reader } from "./reader.ts";
import { backstory, environment } from "./stage.ts";

const stage = inject("stage");
let browser: Browser;
let view: Reader;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  view = await reader(browser);
});
afterEach(async () => {
  // No view causes an error in the browser or a request to another host.
  expect(view.complaints).toEqual([]);
  expect([...view.hosts]).toEqual([new URL(stage.url).host]);
  await view.close();
});

const file = (name: string) => join(stage.project, name);
const runOf = (name: string) => (JSON.parse(backstory(stage, "show", name, "--json")) as { run: string }).run;

test("quick: from the list of runs a reader reaches a run, its result, and what made it", async () => {
  const { page } = view;
  await page.getByRole("link", { name: "second" }).click();
  await page.getByRole("heading", { level: 1, name: "second" }).waitFor();
  await page.getByRole("link", { name: "count.txt" }).click();
  await page.getByRole("heading", { level: 1, name: "count.txt" }).waitFor();
  await page.getByText("4", { exact: false }).first().waitFor();
  await page.getByRole("link", { name: "Where does it come from?" }).click();
  await page.getByRole("heading", { level: 1, name: "Where does count.txt come from?" }).waitFor();
  await page.getByRole("button", { name: "As a list" }).click();
  const rows = await page.getByRole("grid", { name: "Files and commands of this lineage" }).innerText();
  for (const expected of ["clean.py", "stations.csv", "sort -r clean.csv"]) expect(rows).toContain(expected);
});

test("the token leaves the address at once", async () => {
  expect(view.page.url()).not.toContain("token");
});

test("the list of runs is searched, narrowed, and remembers a filter", async () => {
  const { page } = view;
  await page.getByRole("grid", { name: "Runs" }).waitFor();
  await keep(page, "runs");
  await page.getByLabel("How the run ended").selectOption("failed");
  await page.getByText("1 run found").waitFor();
  expect(await page.getByRole("grid", { name: "Runs" }).innerText()).toContain("notebook");
  await page.getByRole("button", { name: "Save this filter" }).click();
  await page.getByLabel("Name of the filter").fill("broken");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.goto(new URL("/", stage.url).href);
  await page.getByRole("link", { name: "broken" }).click();
  await page.getByText("1 run found").waitFor();
  await view.open("/?file=*.ipynb");
  await page.getByText("1 run found").waitFor();
});

test("a file shows its versions, and the difference of two", async () => {
  const { page } = view;
  await view.open(`/file?path=${file("clean.csv")}`);
  expect(await page.locator("ol .event button").count()).toBeGreaterThanOrEqual(2);
  await page.getByRole("grid", { name: "Rows" }).getByText("Lillehammer").waitFor();
  await keep(page, "file");
  await page.getByRole("tab", { name: "Differences" }).click();
  const cells = page.getByRole("grid", { name: "Changed cells" });
  await cells.waitFor();
  expect(await cells.innerText()).toMatch(/Oslo\s+height\s+94\s+120/);
  await page.getByRole("tab", { name: "Who used it" }).click();
  await page.getByRole("grid", { name: "Who used this version" }).getByText("picture.py").waitFor();
});

test("each kind of content is shown in its own way", async () => {
  const { page } = view;
  await view.open(`/file?path=${file("clean.py")}`);
  const source = page.getByRole("region", { name: "Contents" });
  await source.getByText("no markup").waitFor();
  expect(await source.locator(".t-keyword").first().innerText()).toBe("import");
  await view.open(`/file?path=${file("picture.png")}`);
  const image = page.locator("img[alt='Content of picture.png']");
  await image.waitFor();
  expect(await image.evaluate((element: HTMLImageElement) => element.decode().then(() => element.naturalWidth))).toBe(120);
  await page.getByRole("button", { name: "Bytes", exact: true }).click();
  await page.getByRole("region", { name: "Bytes of the file" }).getByText("89504e470d0a1a0a").waitFor();
  await page.goto(new URL(`/file?path=${file("picture.png")}&tab=difference`, stage.url).href);
  // The page also has the change in the words of the file's format.
  await page.getByText("pixels differ, within the frame").waitFor();
  await page.locator(".frame").nth(1).waitFor();
  await keep(page, "images");
  await view.open(`/file?path=${file("notes.ipynb")}`);
  await page.getByText("354 <script>window.hacked=1</script>").waitFor();
  await page.getByText("<img src=x onerror=window.hacked=1>").waitFor();
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("a run shows its processes over time, as a flame graph, and its files and environment", async () => {
  const { page } = view;
  await view.open(`/run/${runOf("second")}`);
  await keep(page, "run");
  await page.getByRole("tab", { name: /Processes/ }).click();
  const lines = page.getByRole("listbox", { name: /Processes over time/ });
  await lines.getByText("picture.py").click();
  await page.getByRole("region", { name: "The chosen process" }).getByText("picture.png").first().waitFor();
  expect(await lines.locator(".moment.write").count()).toBeGreaterThan(0);
  await keep(page, "processes");
  await page.getByRole("button", { name: "Flame graph" }).click();
  await page.getByRole("group", { name: /Flame graph/ }).getByRole("button", { name: /^python3/ }).waitFor();
  await page.getByRole("tab", { name: /Files/ }).click();
  await page.getByRole("grid", { name: "Files of the run" }).getByText("stations.csv").waitFor();
  await page.getByRole("tab", { name: "Environment" }).click();
  await page.getByRole("grid", { name: "Environment" }).getByText("BACKSTORY_STORE").waitFor();
});

test("two runs are compared: the first difference comes first, in words", async () => {
  const { page } = view;
  await view.open(`/compare?a=${runOf("first")}&b=${runOf("second")}`);
  const verdict = page.getByRole("region", { name: "Where they part" });
  await verdict.getByText("stations.csv").first().waitFor();
  await page.getByText("Both sides, step by step").waitFor();
  await keep(page, "compare");
});

test("an outdated result is named with its reason and the command that mends it", async () => {
  const { page } = view;
  appendFileSync(file("stations.csv"), "Bodø,13,North\n");
  await view.open("/status");
  await page.getByText("need attention").waitFor();
  const list = await page.locator("main").innerText();
  expect(list).toContain("stations.csv");
  expect(list).toMatch(/backstory rerun \S*count\.txt/);
  // The page can run a command only if the server was started with --allow-rerun.
  expect(await page.getByRole("button", { name: "Run it here" }).count()).toBe(0);
  await page.getByRole("button", { name: "Copy the command" }).first().click();
  expect(await page.evaluate("navigator.clipboard.readText()")).toMatch(/^backstory rerun /);
  await keep(page, "status");
});

test("a run in progress appears, grows and ends", async () => {
  const { page } = view;
  await view.open("/live");
  await page.getByText("No run is in progress").waitFor();
  const run = spawn(stage.program, ["record", "--name", "slow", "--", "sh", "-c", "read line; cat clean.py"], { cwd: stage.project, env: environment(stage.store), stdio: ["pipe", "ignore", "ignore"] });
  const article = page.getByRole("article");
  await article.getByText("slow", { exact: true }).waitFor();
  await article.getByText("read line").first().waitFor();
  await keep(page, "live");
  run.stdin.end("go\n");
  await page.getByText("Just ended").waitFor();
});

test("a job shows its ranks as one group, and each rank leads to its job", async () => {
  const { page } = view;
  for (const rank of ["0", "1"]) {
    const ranked = { ...environment(stage.store), SLURM_JOB_ID: "71", SLURM_STEP_ID: "0", SLURM_STEP_NUM_TASKS: "3", SLURM_PROCID: rank };
    spawnSync(stage.program, ["record", "--name", `rank-${rank}`, "--", "sh", "-c", `exit ${rank}`], { cwd: stage.project, env: ranked, stdio: "ignore" });
  }
  backstory(stage, "index", "--wait");
  await view.open("/?job=71.*");
  await page.getByText("2 runs found").waitFor();
  await page.getByRole("link", { name: "rank 1 of 3" }).click();
  await page.getByRole("heading", { level: 1, name: "Slurm job 71.0" }).waitFor();
  const main = await page.locator("main").innerText();
  for (const expected of ["2 runs of 3 ranks", "1 ended well", "1 failed", "1 rank without a run in this store"]) expect(main).toContain(expected);
  const ranks = page.getByRole("grid", { name: "Ranks of the job" });
  expect(await ranks.getByRole("row").count()).toBe(3);
  await ranks.getByRole("link", { name: "sh -c 'exit 1'" }).click();
  await page.getByRole("heading", { level: 1, name: "rank-1" }).waitFor();
  await page.getByRole("link", { name: "rank 1 of 3 in Slurm job 71.0" }).waitFor();
});
