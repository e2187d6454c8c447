// Files with more versions, lines and bytes than the page shows at first.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { axe, launch, reader, type Reader } from "./reader.ts";
import { environment, serve } from "./stage.ts";

const VERSIONS = 120;

const { program } = inject("stage");
const directory = mkdtempSync(join(tmpdir(), "backstory-history-"));
const stage = { program, project: directory, store: join(directory, "store") };
const path = encodeURIComponent(join(directory, "grown"));
let browser: Browser;
let server: Awaited<ReturnType<typeof serve>>;
let view: Reader;

beforeAll(async () => {
  const run = (...words: string[]) => spawnSync(program, words, { cwd: directory, env: environment(stage.store), stdio: "ignore" });
  for (let size = 1; size <= VERSIONS; size += 1) run("record", "--guard=off", "--", "sh", "-c", `printf %${String(size)}s >grown`);
  run("record", "--guard=off", "--", "sh", "-c", "seq 12001 >numbers.txt; head -c 100000 /dev/zero >zeros.bin; printf end >>zeros.bin");
  run("index", "--wait");
  browser = await launch();
  server = await serve(stage);
  view = await reader(browser, "light", server.url);
});
afterAll(async () => {
  server.server.kill("SIGTERM");
  await browser.close();
  rmSync(directory, { recursive: true, force: true });
});

test("the newest versions come first, and the older ones when the reader wants them", async () => {
  const { page } = view;
  await view.open(`/file?path=${path}`);
  const versions = page.getByRole("list", { name: "Versions, the newest first" }).locator(".event");
  expect(await versions.count()).toBe(100);
  expect(await versions.first().innerText()).toContain("120 bytes");
  expect(await axe(page)).toEqual([]);
  await page.getByText("20 more events").waitFor();
  await page.getByRole("button", { name: "Show older versions" }).press("Enter");
  await versions.nth(VERSIONS - 1).getByText("1 byte").waitFor();
  expect(await versions.count()).toBe(VERSIONS);
  expect(await page.getByRole("button", { name: "Show older versions" }).count()).toBe(0);
});

test("a long text and the bytes of a long file are shown to their ends", async () => {
  const { page } = view;
  for (const [name, label, shown, last] of [
    ["numbers.txt", "Contents", ["2,000", "7,000", "12,000"], "12001"],
    ["zeros.bin", "Bytes of the file", ["2,000"], "656e64"],
  ] as const) {
    await view.open(`/file?path=${encodeURIComponent(join(directory, name))}`);
    for (const count of shown) await page.getByRole("button", { name: `Show more (${count} of` }).click();
    const region = page.getByRole("region", { name: label });
    await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
    await region.evaluate((element) => {
      element.scrollTop = element.scrollHeight;
    });
    await region.getByText(last, { exact: true }).first().waitFor();
    expect(await axe(page)).toEqual([]);
  }
});

test("a link to an old version shows it in the list", async () => {
  const { page } = view;
  const oldest = await page.evaluate(async (path) => {
    const answer = await fetch(`/api/v1/file?path=${path}&cursor=1`);
    return ((await answer.json()) as { events: { version: string }[] }).events[0]?.version;
  }, path);
  await view.open(`/file?path=${path}&version=${String(oldest)}`);
  await page.locator("[aria-current=true]", { hasText: "1 byte" }).waitFor();
  await page.getByRole("region", { name: "The chosen version" }).getByText("1 byte").waitFor();
});
