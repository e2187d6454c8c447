// The bytes of a result and the bytes that they came from are lit side by side.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { axe, keep, launch, reader } from "./reader.ts";
import { backstory, environment } from "./stage.ts";

const stage = inject("stage");
const needed = ["/usr/bin/valgrind", "/usr/include/valgrind/pub_tool_tooliface.h", "/usr/bin/gcc"];
let browser: Browser;
let engine: string;

beforeAll(async () => {
  browser = await launch();
  engine = mkdtempSync(join(tmpdir(), "backstory-engine-"));
});
afterAll(async () => {
  await browser.close();
  rmSync(engine, { recursive: true, force: true });
});

test.skipIf(!needed.every((path) => existsSync(path)))("a chosen word is lit on both sides, and the address keeps it", async () => {
  execFileSync(join(import.meta.dirname, "../../../../bytes/build"), [engine]);
  const words = ["record", "--bytes", "--name", "bytes", "--", "sh", "-c", "sort -r clean.csv >lit.csv"];
  execFileSync(stage.program, words, { cwd: stage.project, env: { ...environment(stage.store), BACKSTORY_BYTE_ENGINE: engine }, stdio: "ignore" });
  backstory(stage, "index", "--wait");
  const view = await reader(browser);
  const { page } = view;
  await view.open(`/file?path=${join(stage.project, "lit.csv")}`);
  await page.getByRole("tab", { name: "Bytes" }).click();
  await page.getByText("Nothing is chosen").waitFor();
  const own = page.getByRole("region", { name: "Bytes of this version" });
  await own.getByText("Lillehammer").click();
  const source = page.getByRole("region", { name: "Source clean.csv" });
  await source.locator("mark.copied").waitFor();
  expect(await source.locator("mark").allInnerTexts()).toEqual(["Lillehammer"]);
  expect(await own.locator("mark").allInnerTexts()).toEqual(["Lillehammer"]);
  await page.getByText("11 bytes copied from here").waitFor();
  expect(await axe(page)).toEqual([]);
  await keep(page, "bytes");
  const kept = page.url();
  // The number of a line chooses the line.
  await own.locator(".number").first().click();
  await source.locator("mark").nth(1).waitFor();
  await page.goto(kept);
  await source.locator("mark.copied").waitFor();
  expect(await source.locator("mark").allInnerTexts()).toEqual(["Lillehammer"]);
  // A run that the engine did not follow names the command that does it.
  await view.open(`/file?path=${join(stage.project, "sorted.csv")}&tab=bytes`);
  await page.getByText(/backstory refine \S*sorted\.csv/).waitFor();
  expect(view.complaints).toEqual([]);
  await view.close();
});
