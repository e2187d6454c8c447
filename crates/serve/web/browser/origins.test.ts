// The bytes of a result and the bytes that they came from are lit side by side.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

const absent = !needed.every((path) => existsSync(path));

beforeAll(async () => {
  browser = await launch();
  engine = mkdtempSync(join(tmpdir(), "backstory-engine-"));
  if (!absent) execFileSync(join(import.meta.dirname, "../../../../bytes/build"), [engine]);
});
afterAll(async () => {
  await browser.close();
  rmSync(engine, { recursive: true, force: true });
});

/** Records a command of a shell under the byte engine. */
function follow(name: string, command: string): void {
  const words = ["record", "--bytes", "--name", name, "--", "sh", "-c", command];
  execFileSync(stage.program, words, { cwd: stage.project, env: { ...environment(stage.store), BACKSTORY_BYTE_ENGINE: engine }, stdio: "ignore" });
  backstory(stage, "index", "--wait");
}

test.skipIf(absent)("a chosen word is lit on both sides, and the address keeps it", async () => {
  follow("bytes", "sort -r clean.csv >lit.csv");
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

const PROGRAM = `#include <fcntl.h>
#include <unistd.h>
static void put(int out) { write(out, "head", 4); }
int main(void) { put(open("head.txt", O_CREAT | O_WRONLY | O_TRUNC, 0644)); }
`;

test.skipIf(absent)("bytes far behind are shown with those around them, and with the functions that wrote them", async () => {
  const lines = Array.from({ length: 200_000 }, (_, index) => `line ${String(index).padStart(6, "0")}\n`);
  writeFileSync(join(stage.project, "long.txt"), lines.join(""));
  writeFileSync(join(stage.project, "head.c"), PROGRAM);
  execFileSync("gcc", ["-g", "-w", "-o", "head", "head.c"], { cwd: stage.project });
  follow("far", "cat long.txt >far.txt; ./head");
  const view = await reader(browser);
  const { page } = view;
  // Line 150000 begins after as many lines of 12 bytes.
  await view.open(`/file?path=${join(stage.project, "far.txt")}&tab=bytes&bytes=1800000-1800010`);
  for (const name of ["Bytes of this version", "Source long.txt"]) {
    const lit = page.getByRole("region", { name }).locator("mark").first();
    await lit.waitFor();
    expect(await page.getByRole("region", { name }).locator("mark").allInnerTexts()).toEqual(["line", " ", "150000"]);
  }
  await page.getByText("Shown are the bytes 1310720-2359295").waitFor();
  await page.getByLabel("Bytes", { exact: true }).fill("0-3");
  await page.keyboard.press("Enter");
  await page.getByText("Shown are the bytes 0-1048575").waitFor();
  await view.open(`/file?path=${join(stage.project, "head.txt")}&tab=bytes&bytes=0-3`);
  await page.getByText("Bytes 0-3: written by put() in head.c:3, called by main() in head.c:4").waitFor();
  expect(view.complaints).toEqual([]);
  await view.close();
});
