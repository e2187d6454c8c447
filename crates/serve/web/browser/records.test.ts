// The records that a program added, with the verdicts of their schemas.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { axe, launch, reader, type Reader } from "./reader.ts";
import { backstory, serve } from "./stage.ts";

const { program } = inject("stage");
const directory = mkdtempSync(join(tmpdir(), "backstory-records-"));
const stage = { program, project: directory, store: join(directory, "store") };
let browser: Browser;
let server: Awaited<ReturnType<typeof serve>>;
let view: Reader;

beforeAll(async () => {
  const run = (...words: string[]) => backstory(stage, ...words);
  writeFileSync(join(directory, "schema.json"), '{"properties": {"loss": {"type": "number"}}}');
  run("schema", "add", "org.example.loss", "schema.json");
  const record = `'${program}' emit record`;
  run("record", "--", "sh", "-c", `${record} org.example.loss '{"loss": 1}'; ${record} org.example.loss '{"loss": "<b>"}'; ${record} org.example.other 7`);
  browser = await launch();
  server = await serve(stage);
  view = await reader(browser, "light", server.url);
});
afterAll(async () => {
  server.server.kill("SIGTERM");
  await browser.close();
  rmSync(directory, { recursive: true, force: true });
});

test("each record of a process has the verdict of its schema", async () => {
  const { page } = view;
  const run = (JSON.parse(backstory(stage, "show", "--json")) as { run: string }).run;
  await view.open(`/run/${run}`);
  await page.getByRole("tab", { name: /Processes/ }).click();
  await page.getByRole("listbox", { name: /Processes over time/ }).getByText("sh").first().click();
  const process = page.getByRole("region", { name: "The chosen process" });
  await process.getByText("3 records of the program, 1 not valid").click();
  const records = process.locator("details li");
  expect(await records.nth(0).innerText()).toMatch(/●\s*valid$/);
  expect(await records.nth(1).innerText()).toContain('not valid: /loss: "<b>" is not of type "number"');
  expect(await records.nth(2).innerText()).toContain("no schema is registered");
  expect(await axe(page)).toEqual([]);
  expect(view.complaints).toEqual([]);
});
