// The page of an incident: from a file to the request that wrote it, its bytes, and its command.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { axe, keep, launch, reader, type Reader } from "./reader.ts";
import { backstory, environment, serve } from "./stage.ts";

const { program } = inject("stage");
const directory = mkdtempSync(join(tmpdir(), "backstory-incident-"));
const stage = { program, project: directory, store: join(directory, "store") };
let browser: Browser;
let server: Awaited<ReturnType<typeof serve>>;
let view: Reader;

beforeAll(async () => {
  cpSync(join(import.meta.dirname, "../../../../examples/incident"), directory, { recursive: true });
  // The client waits for the server's port, and its last upload ends the server.
  const options = { cwd: directory, env: environment(stage.store), stdio: "ignore" } as const;
  const client = spawn("python3", ["client.py"], options);
  const served = new Promise<number | null>((resolve) => {
    client.on("exit", resolve);
  });
  execFileSync(program, ["record", "--deep", "--outputs=full", "--name", "story", "--", "python3", "upload.py", "3"], options);
  expect(await served).toBe(0);
  backstory(stage, "index", "--wait");
  browser = await launch();
  server = await serve(stage);
  view = await reader(browser, "light", server.url);
});
afterAll(async () => {
  server.server.kill("SIGTERM");
  await browser.close();
  rmSync(directory, { recursive: true, force: true });
});

test("a file leads to the request that wrote it, with its bytes and no secret", async () => {
  const { page } = view;
  await view.open(`/file?path=${encodeURIComponent(join(directory, "page.py"))}`);
  await page.getByRole("link", { name: "Which request changed it?" }).click();
  await page.getByRole("heading", { level: 1, name: "page.py" }).waitFor();
  await page.getByRole("heading", { level: 2, name: /Request 2, from 127\.0\.0\.1:/ }).waitFor();
  const incident = page.locator("section.incident");
  expect(await incident.count()).toBe(1);
  const shown = await incident.innerText();
  for (const expected of ["POST /?name=../page.py", "print('not an upload')", "201 Created", "is there, as the run left it"]) expect(shown).toContain(expected);
  expect(shown).toContain("Authorization: <redacted>");
  expect(shown).not.toContain("0123456789abcdef");
  await keep(page, "incident");
  expect(await axe(page)).toEqual([]);
  expect(view.complaints).toEqual([]);
});

test("the command that runs the request again is copied, and the page does not run it", async () => {
  const { page } = view;
  const incident = page.locator("section.incident");
  await incident.getByRole("button", { name: "Copy the command" }).click();
  expect(await page.evaluate("navigator.clipboard.readText()")).toMatch(/^backstory replay --deep \S+ --request 2 /);
});

test("an address of the run's peers leads to all requests of that peer", async () => {
  const { page } = view;
  await view.open(`/scene?address=${encodeURIComponent("127.0.0.1")}`);
  await page.getByText("Requests of this peer").waitFor();
  await page.getByRole("heading", { level: 2, name: /Request 3, from/ }).waitFor();
  expect(await page.locator("section.incident").count()).toBe(3);
  const shown = await page.locator("main").innerText();
  for (const expected of ["photo.txt", "notes.txt", "page.py"]) expect(shown).toContain(expected);
});
