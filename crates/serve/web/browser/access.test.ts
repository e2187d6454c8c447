// Accessibility: axe-core finds nothing in any view, and the keyboard reaches every control.
import { spawnSync } from "node:child_process";
import type { Browser } from "playwright-core";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { axe, keep, launch, reader } from "./reader.ts";
import { backstory, environment } from "./stage.ts";

const stage = inject("stage");
let browser: Browser;
beforeAll(async () => {
  recordRank();
  browser = await launch();
});
afterAll(() => browser.close());

const runOf = (name: string) => (JSON.parse(backstory(stage, "show", name, "--json")) as { run: string }).run;
const file = (name: string) => encodeURI(join(stage.project, name));

/** A run that is a rank of a job, whose other rank is missing. */
function recordRank(): void {
  const ranked = { ...environment(stage.store), SLURM_JOB_ID: "72", SLURM_STEP_ID: "0", SLURM_STEP_NUM_TASKS: "2", SLURM_PROCID: "0" };
  spawnSync(stage.program, ["record", "--name", "rank", "--", "true"], { cwd: stage.project, env: ranked, stdio: "ignore" });
  backstory(stage, "index", "--wait");
}

function addresses(): Record<string, string> {
  return {
    runs: "/",
    "runs with every filter": "/?text=s&command=sh*&status=ok",
    "a file": `/file?path=${file("clean.py")}`,
    "a table": `/file?path=${file("clean.csv")}`,
    "bytes": `/file?path=${file("picture.png")}&view=hex`,
    "a notebook": `/file?path=${file("notes.ipynb")}`,
    "a difference": `/file?path=${file("clean.csv")}&tab=difference&view=text`,
    "users": `/file?path=${file("clean.csv")}&tab=users`,
    lineage: `/lineage?path=${file("count.txt")}`,
    "lineage as a list": `/lineage?path=${file("count.txt")}&as=list`,
    "no lineage yet": "/lineage",
    "a run": `/run/${runOf("second")}`,
    "an incomplete or failed run": `/run/${runOf("notebook")}`,
    processes: `/run/${runOf("second")}?tab=processes`,
    "a flame graph": `/run/${runOf("second")}?tab=processes&as=flame`,
    "files of a run": `/run/${runOf("second")}?tab=files`,
    environment: `/run/${runOf("second")}?tab=environment`,
    repeats: `/run/${runOf("second")}?tab=repeats`,
    "a rank of a job": `/run/${runOf("rank")}`,
    "a job": "/job?launcher=Slurm&id=72.0",
    compare: `/compare?a=${runOf("first")}&b=${runOf("second")}`,
    status: "/status",
    live: "/live",
    "no such run": "/run/zzzzzzzz",
    "no such page": "/nothing",
  };
}

describe.each(["light", "dark"] as const)("in %s", (scheme) => {
  test("axe-core finds nothing in any view", async () => {
    const view = await reader(browser, scheme);
    const found: string[] = [];
    for (const [name, address] of Object.entries(addresses())) {
      await view.open(address);
      found.push(...(await axe(view.page)).map((violation) => `${name}: ${violation}`));
    }
    expect(found).toEqual([]);
    await view.open(addresses()["lineage"] ?? "/");
    await keep(view.page, `lineage-${scheme}`);
    await view.close();
  }, 300_000);
});

test("the keyboard alone leads from the list of runs to a process", async () => {
  const view = await reader(browser);
  const { page } = view;
  await view.open("/");
  const runs = page.getByRole("grid", { name: "Runs" });
  for (let presses = 0; presses < 40 && !(await runs.evaluate((grid) => grid === document.activeElement)); presses += 1) await page.keyboard.press("Tab");
  expect(await runs.evaluate((grid) => grid === document.activeElement && getComputedStyle(grid).outlineStyle !== "none")).toBe(true);
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "first" }).waitFor();
  // The heading of the new view has the focus, so that Tab continues from there.
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe("H1");
  const overview = page.getByRole("tab", { name: "Overview" });
  for (let presses = 0; presses < 20 && !(await overview.evaluate((tab) => tab === document.activeElement)); presses += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  const lines = page.getByRole("listbox", { name: /Processes over time/ });
  await lines.waitFor();
  for (let presses = 0; presses < 20 && !(await lines.evaluate((list) => list === document.activeElement)); presses += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "The chosen process" }).waitFor();
  await view.close();
});

test("a slash leads to the search, and the search to a file", async () => {
  const view = await reader(browser);
  const { page } = view;
  await view.open("/status");
  await page.keyboard.press("/");
  await page.keyboard.type("stations");
  await page.getByRole("option", { name: /stations\.csv/ }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "stations.csv" }).waitFor();
  await view.close();
});

test("the theme is chosen, and kept for the next visit", async () => {
  const view = await reader(browser);
  const { page } = view;
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByLabel("Colours of the page").selectOption("dark");
  const dark = await ground();
  expect(dark).not.toBe(light);
  await view.open("/");
  expect(await ground()).toBe(dark);
  await view.close();
});
