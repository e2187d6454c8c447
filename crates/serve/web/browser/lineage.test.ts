// The graph of a lineage: its nodes, its growth by unfolding, and its export.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { keep, launch, reader, type Reader } from "./reader.ts";

const stage = inject("stage");
let browser: Browser;
let view: Reader;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  view = await reader(browser);
  await view.open(`/lineage?path=${join(stage.project, "count.txt")}`);
  await view.page.waitForFunction(() => "cy" in (document.querySelector(".drawing") ?? {}));
});
afterEach(async () => {
  expect(view.complaints).toEqual([]);
  await view.close();
});

interface Nodes {
  map: (each: (node: { data: (name: string) => string }) => string) => string[];
  not: (selector: string) => Nodes;
}

interface Shown {
  labels: string[];
  lit: string[];
}

/** Returns the nodes of the drawing. */
function shown(page: Page): Promise<Shown> {
  return page.evaluate(() => {
    const { cy } = document.querySelector(".drawing") as unknown as { cy: { nodes: (selector?: string) => Nodes } };
    return { labels: cy.nodes().map((node) => node.data("label")), lit: cy.nodes().not(".dim").map((node) => node.data("label")) } as Shown;
  });
}

/** Returns the position on the screen of the node with this label. */
async function position(page: Page, label: string): Promise<{ x: number; y: number }> {
  const inside = await page.evaluate((wanted) => {
    interface Node { data: (name: string) => string; renderedPosition: () => { x: number; y: number } }
    const { cy } = document.querySelector(".drawing") as unknown as { cy: { fit: () => void; nodes: () => { toArray: () => Node[] } } };
    cy.fit();
    return cy.nodes().toArray().find((node) => node.data("label").startsWith(wanted))?.renderedPosition();
  }, label);
  const box = await page.locator(".drawing").boundingBox();
  if (!inside || !box) throw new Error(`no node ${label}`);
  return { x: box.x + inside.x, y: box.y + inside.y };
}

test("commands and own files are shown first, the system's files as counted nodes", async () => {
  const { labels } = await shown(view.page);
  for (const expected of ["count.txt", "sorted.csv", "clean.csv", "stations.csv", "clean.py"]) expect(labels).toContain(expected);
  expect(labels.some((label) => label.startsWith("wc -l"))).toBe(true);
  expect(labels.length).toBeLessThan(20);
  expect(labels.some((label) => /^\d+ system files/.test(label))).toBe(true);
  await keep(view.page, "lineage");
});

test("the way through a node lights up under the pointer", async () => {
  const { page } = view;
  const { x, y } = await position(page, "clean.py");
  await page.mouse.move(x, y);
  await page.waitForFunction(() => {
    const { cy } = document.querySelector(".drawing") as unknown as { cy: { nodes: (selector: string) => { length: number } } };
    return cy.nodes(".dim").length > 0;
  });
  const { lit } = await shown(page);
  expect(lit).toContain("count.txt");
  expect(lit).not.toContain("stations.csv");
});

test("a counted node opens, and a step further is added", async () => {
  const { page } = view;
  const before = (await shown(page)).labels;
  const fold = before.find((label) => /^\d+ system files/.test(label)) ?? "";
  const at = await position(page, fold);
  await page.mouse.click(at.x, at.y);
  await page.getByRole("button", { name: /Show them in the graph|Show the first 200/ }).click();
  await page.waitForFunction((count) => {
    const { cy } = document.querySelector(".drawing") as unknown as { cy: { nodes: () => { length: number } } };
    return cy.nodes().length > count;
  }, before.length);
  await page.getByRole("grid", { name: "Folded files" }).waitFor({ state: "detached" }).catch(() => undefined);
  const file = await position(page, "clean.csv");
  await page.mouse.click(file.x, file.y);
  const opened = (await shown(page)).labels.length;
  await page.getByRole("button", { name: "One step on" }).click();
  await page.waitForFunction((count) => {
    const { cy } = document.querySelector(".drawing") as unknown as { cy: { nodes: () => { length: number } } };
    return cy.nodes().length > count;
  }, opened);
  expect((await shown(page)).labels.join("\n")).toContain("picture.py");
});

test("arrow keys follow the data", async () => {
  const { page } = view;
  await page.getByRole("application").focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByText(/Chosen: .*count\.txt/).waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.getByText(/Chosen: wc -l/).waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.getByText(/Chosen: .*sorted\.csv/).waitFor();
});

test("ways are filtered by path and program, and the address keeps the filter", async () => {
  const { page } = view;
  await page.getByLabel("Only ways through a program").selectOption("sort");
  await page.waitForURL(/program=sort/);
  await page.getByText("on ways through sort").waitFor();
  expect((await shown(page)).labels).toContain("sorted.csv");
});

test("the graph is exported as SVG, PNG and DOT, and its link is copied", async () => {
  const { page } = view;
  const beginnings: Record<string, string> = { svg: "<svg", png: "\x89PNG", dot: "digraph" };
  for (const [form, beginning] of Object.entries(beginnings)) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Take the graph away").selectOption(form)]);
    expect(download.suggestedFilename()).toBe(`count.txt.of.${form}`);
    expect(readFileSync(await download.path(), "latin1").startsWith(beginning)).toBe(true);
  }
  await page.getByLabel("Take the graph away").selectOption("link");
  await page.getByText("Link copied").waitFor({ state: "attached" });
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(page.url());
});
