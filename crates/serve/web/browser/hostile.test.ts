// File names are untrusted input: the page shows them, and they have no effect on it.
import type { Browser } from "playwright-core";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { launch, reader } from "./reader.ts";
import { backstory, serve } from "./stage.ts";

const stage = inject("stage");
let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const SHOWN = ["<script>window.hacked=1<script>.txt", "line\\nbreak.txt", "photo_\\u{202e}gpj.txt", "caf\\xe9.txt", "<img src=x onerror=window.hacked=1>.txt", "a&b=c#d?e.txt"];

test("hostile names are shown visibly, lead to their files, and are never executed", async () => {
  const view = await reader(browser);
  const { page } = view;
  const { run } = JSON.parse(backstory(stage, "show", "hostile", "--json")) as { run: string };
  page.on("dialog", () => view.complaints.push("a dialog"));
  for (const name of SHOWN) {
    await view.open(`/run/${run}?tab=files`);
    const text = await page.getByRole("grid", { name: "Files of the run" }).innerText();
    expect(text).toContain(name);
    await page.getByRole("link").filter({ hasText: name }).first().click();
    await page.getByRole("heading", { level: 1 }).filter({ hasText: name }).waitFor();
    await page.getByText("The file was empty.").waitFor();
  }
  await view.open(`/lineage?path=${join(stage.project, "odd.txt")}&as=list`);
  const list = await page.getByRole("grid", { name: /Files and commands/ }).innerText();
  for (const name of SHOWN) expect(list).toContain(name);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
  expect(view.complaints).toEqual([]);
  await view.close();
});

test("what does not exist has a page that says so", async () => {
  const view = await reader(browser);
  await view.open("/run/zzzzzzzz");
  await view.page.getByRole("alert").waitFor();
  await view.open("/file?path=/no/such/file");
  await view.page.getByText(/No recorded run|[Nn]ot/).first().waitFor();
  await view.open("/nothing/here");
  await view.page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await view.close();
});

test("without the token, nothing is shown", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const response = await page.goto(new URL("/?token=wrong", stage.url).href);
  expect(response?.status()).toBeGreaterThanOrEqual(401);
  expect(await page.locator("body").innerText()).not.toContain("notebook");
  await context.close();
});

test("only a server that was allowed to offers to run a step", async () => {
  const { server, url } = await serve(stage, "--allow-rerun");
  const view = await reader(browser, "light", url);
  await view.open("/status");
  const button = view.page.getByRole("button", { name: "Run it here" }).first();
  await button.waitFor();
  await button.click();
  await view.page.getByRole("button", { name: "Leave it" }).waitFor();
  server.kill("SIGTERM");
  await view.close();
});
