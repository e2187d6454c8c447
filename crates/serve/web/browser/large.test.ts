// The graph of thousands of nodes: it is painted, moved, enlarged and pointed at.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { axe, keep, launch, reader, type Reader } from "./reader.ts";
import { environment, serve } from "./stage.ts";

/** So many processes copy one file: the file, the processes and the copies are the graph. */
const COPIES = 300;

interface Place {
  x: number;
  y: number;
}

type Drawn = HTMLCanvasElement & { placeOf: (id: string) => Place | null };

const { program } = inject("stage");
const directory = mkdtempSync(join(tmpdir(), "backstory-large-"));
const stage = { program, project: directory, store: join(directory, "store") };
const source = join(directory, "source.txt");
let browser: Browser;
let server: Awaited<ReturnType<typeof serve>>;

beforeAll(async () => {
  writeFileSync(source, "a\n");
  const script = `mkdir copies; i=0; while [ $i -lt ${String(COPIES)} ]; do cp source.txt copies/$i; i=$((i+1)); done`;
  const run = (...words: string[]) => spawnSync(program, words, { cwd: directory, env: environment(stage.store), stdio: "ignore" });
  run("record", "--name", "copies", "--", "sh", "-c", script);
  run("index", "--wait");
  browser = await launch();
  server = await serve(stage);
});
afterAll(async () => {
  server.server.kill("SIGTERM");
  await browser.close();
  rmSync(directory, { recursive: true, force: true });
});

async function openLarge(scheme: "light" | "dark" = "light"): Promise<Reader> {
  const view = await reader(browser, scheme, server.url);
  await view.open(`/lineage?path=${source}&direction=uses&level=process&nodes=5000`);
  await view.page.waitForFunction(() => "placeOf" in (document.querySelector(".drawing canvas") ?? {}));
  await view.page.waitForTimeout(300);
  return view;
}

/** The nodes' ids, as the answer has them. */
async function copyIds(page: Page): Promise<string[]> {
  return page.evaluate(async (path) => {
    const answer = await fetch(`/api/v1/lineage?path=${path}&direction=uses&level=process&nodes=5000`);
    const { nodes } = (await answer.json()) as { nodes: { id: string; type: string; path?: string }[] };
    return nodes.filter((node) => node.type === "file" && node.path?.includes("/copies/")).map((node) => node.id);
  }, source);
}

async function placeOf(page: Page, id: string): Promise<Place> {
  const inside = await page.evaluate((id) => (document.querySelector(".drawing canvas") as Drawn).placeOf(id), id);
  const box = await page.locator(".drawing canvas").boundingBox();
  if (!inside || !box) throw new Error(`no node ${id}`);
  return { x: box.x + inside.x, y: box.y + inside.y };
}

/** The share of pixels that differ from the first picture, moved by `right` and `down`. */
function differing(page: Page, right: number, down: number): Promise<number> {
  return page.evaluate(([right, down]) => {
    const canvas = document.querySelector<HTMLCanvasElement>(".drawing canvas");
    const { first } = window as unknown as { first: ImageData };
    const now = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height);
    if (!now) return 1;
    let [compared, other] = [0, 0];
    for (let y = Math.max(0, down); y < now.height + Math.min(0, down); y += 1) {
      for (let x = Math.max(0, right); x < now.width + Math.min(0, right); x += 1) {
        const [here, there] = [4 * (y * now.width + x), 4 * ((y - down) * now.width + x - right)];
        compared += 1;
        if ([0, 1, 2].some((part) => Math.abs((now.data[here + part] ?? 0) - (first.data[there + part] ?? 0)) > 24)) other += 1;
      }
    }
    return other / compared;
  }, [right, down] as const);
}

function rememberPicture(page: Page): Promise<void> {
  return page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".drawing canvas");
    Object.assign(window, { first: canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) });
  });
}

/** Drags in small steps, and leaves the pointer where it ends. */
async function drag(page: Page, right: number, down: number): Promise<void> {
  const box = await page.locator(".drawing canvas").boundingBox();
  if (!box) throw new Error("no drawing");
  const from = { x: box.x + box.width / 2 - right / 2, y: box.y + box.height / 2 - down / 2 };
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(from.x + right, from.y + down, { steps: 20 });
  await page.waitForTimeout(100);
}

test("a dragged graph keeps its dots, links and labels, during the drag and after it", async () => {
  const view = await openLarge();
  const { page } = view;
  for (let step = 0; step < 5; step += 1) await page.getByRole("button", { name: "Larger" }).click();
  await page.waitForTimeout(300);
  await page.mouse.move(5, 5);
  await rememberPicture(page);
  expect(await differing(page, 0, 0)).toBe(0);
  expect(await differing(page, 120, 40)).toBeGreaterThan(0.01);
  await drag(page, 120, 40);
  expect(await differing(page, 120, 40)).toBeLessThan(0.001);
  await page.mouse.up();
  // Farther than the margin that was painted: the picture is painted anew.
  await drag(page, -500, -160);
  await page.mouse.up();
  await page.mouse.move(5, 5);
  await page.waitForTimeout(300);
  expect(await differing(page, -380, -120)).toBeLessThan(0.005);
  await keep(page, "large-dragged");
  expect(view.complaints).toEqual([]);
  await view.close();
});

/** The width in pixels of the panel that opens on the right, and some more. */
const PANEL = 400;

/** The nodes that are seen, and are still seen when the panel has opened. */
async function seen(page: Page, ids: string[]): Promise<string[]> {
  const box = await page.locator(".drawing canvas").boundingBox();
  if (!box) throw new Error("no drawing");
  const places = await Promise.all(ids.map((id) => placeOf(page, id)));
  return ids.filter((_, index) => {
    const { x, y } = places[index] ?? { x: 0, y: 0 };
    return x > box.x + 40 && x < Math.min(box.x + box.width - 40, 1280 - PANEL) && y > box.y + 40 && y < box.y + box.height - 40;
  });
}

/** The id of the node that the panel shows. */
async function chosen(page: Page): Promise<string | null> {
  await page.waitForTimeout(200);
  const link = page.getByRole("complementary", { name: "The chosen node" }).getByRole("link", { name: "Open the file" });
  return new URL((await link.getAttribute("href")) ?? "", server.url).searchParams.get("version");
}

test("a click chooses the node under the pointer, before a drag, after it, and after the wheel", async () => {
  const view = await openLarge();
  const { page } = view;
  const ids = await copyIds(page);
  expect(ids.length).toBe(COPIES);
  const choose = async (id: string) => {
    const { x, y } = await placeOf(page, id);
    await page.mouse.click(x, y);
    expect(await chosen(page)).toBe(id);
    return { x, y };
  };
  const [first = ""] = await seen(page, ids);
  // The panel that opens leaves the node where it was clicked.
  const clicked = await choose(first);
  expect(await placeOf(page, first)).toEqual(clicked);
  await drag(page, 30, -30);
  await page.mouse.up();
  const [one = "", ...others] = (await seen(page, ids)).filter((id) => id !== first);
  const other = others.at(-1) ?? "";
  await choose(one);
  const before = [await placeOf(page, one), await placeOf(page, other)] as const;
  await page.mouse.move(before[1].x, before[1].y);
  await page.mouse.wheel(0, -150);
  await page.waitForTimeout(300);
  const after = [await placeOf(page, one), await placeOf(page, other)] as const;
  const apart = ([a, b]: readonly [Place, Place]) => Math.hypot(a.x - b.x, a.y - b.y);
  expect(apart([before[1], after[1]])).toBeLessThan(1);
  expect(apart(after)).toBeGreaterThan(1.2 * apart(before));
  await choose(other);
  await keep(page, "large-chosen");
  await view.close();
});

test("a double click asks for a step further from the node", async () => {
  const view = await openLarge();
  const { page } = view;
  const id = (await seen(page, await copyIds(page)))[0] ?? "";
  const { x, y } = await placeOf(page, id);
  await page.mouse.dblclick(x, y);
  await page.getByText("There is nothing more in this direction.").waitFor();
  expect(await chosen(page)).toBe(id);
  await view.close();
});

test("the way through a dot lights up, a drag chooses nothing, and keys reach a node out of sight", async () => {
  const view = await openLarge();
  const { page } = view;
  const ids = await copyIds(page);
  await rememberPicture(page);
  const { x, y } = await placeOf(page, ids[20] ?? "");
  await page.mouse.move(x, y);
  await page.waitForTimeout(300);
  expect(await differing(page, 0, 0)).toBeGreaterThan(0.01);
  await keep(page, "large-lit");
  await drag(page, 60, 20);
  await page.mouse.up();
  expect(await page.getByRole("complementary", { name: "The chosen node" }).count()).toBe(0);
  for (let step = 0; step < 12; step += 1) await page.getByRole("button", { name: "Larger" }).click();
  await page.getByRole("application").focus();
  await page.keyboard.press("ArrowRight");
  await page.getByText(/Chosen: .*source\.txt/).waitFor();
  await page.waitForTimeout(300);
  const box = await page.locator(".drawing canvas").boundingBox();
  const root = await page.evaluate(() => new URL(document.querySelector<HTMLAnchorElement>("aside a.main")?.href ?? "").searchParams.get("version") ?? "");
  const place = await placeOf(page, root);
  expect(box && place.x > box.x && place.x < box.x + box.width && place.y > box.y && place.y < box.y + box.height).toBe(true);
  await view.close();
});

test.each(["light", "dark"] as const)("axe-core finds nothing in the large graph in %s", async (scheme) => {
  const view = await openLarge(scheme);
  expect(await axe(view.page)).toEqual([]);
  await keep(view.page, `large-${scheme}`);
  expect(view.complaints).toEqual([]);
  await view.close();
});
