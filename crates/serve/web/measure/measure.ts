/**
 * Measures the page in headless Chromium, against a running server. Prints one line for each
 * figure.
 *
 * usage: npm run measure -- URL PATH [REPEATS [WIDE]]
 *
 * - URL: the address that `backstory serve` prints;
 * - PATH: a file of the store with a large lineage;
 * - WIDE: a file that thousands of processes used, for the last figure.
 *
 * The figures:
 * - first view: from the start of the navigation until the first rows of the runs are painted;
 * - click to answer: from a click on a link or a node until the view shows the answer;
 * - pan: frames that the compositor draws per second while the view of up to 5,000 nodes is dragged
 *   for two seconds.
 */
import { chromium, type Page } from "playwright-core";
import { pan } from "./pan.ts";

const [url, path, repeats = "7", wide] = process.argv.slice(2);
if (!url || !path) {
  console.error("usage: npm run measure -- URL PATH [REPEATS [WIDE]]");
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
const page = await context.newPage();

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

function report(what: string, values: number[], unit: string): void {
  const sorted = [...values].sort((a, b) => a - b);
  console.log(`${what}: median ${median(values).toFixed(0)} ${unit}, from ${(sorted[0] ?? 0).toFixed(0)} to ${(sorted.at(-1) ?? 0).toFixed(0)} (${String(values.length)} times)`);
}

/** Returns the milliseconds from a call until `shown` is in the document and a frame is painted. */
async function until(page: Page, act: string, shown: string): Promise<number> {
  return page.evaluate(
    async ([act, shown]) => {
      const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      const start = performance.now();
      // The click happens inside the page, so that the connection to the debugger is not measured.
      document.querySelector<HTMLElement>(act ?? "")?.click();
      while (!document.querySelector(shown ?? "")) await new Promise((resolve) => setTimeout(resolve, 1));
      await painted();
      return performance.now() - start;
    },
    [act, shown],
  );
}

const firstViews: number[] = [];
await page.goto(url);
for (let time = 0; time < Number(repeats); time += 1) {
  await page.goto(new URL("/", url).href, { waitUntil: "commit" });
  firstViews.push(
    await page.evaluate(async () => {
      while (!document.querySelector("[role=grid] .line")) await new Promise((resolve) => setTimeout(resolve, 1));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      return performance.now();
    }),
  );
}
const runs = await page.locator("h1 + p").innerText();
report(`first view of the runs (${/[\d,]+ runs?/.exec(runs)?.[0] ?? ""})`, firstViews, "ms");

const clicks: Record<string, number[]> = { run: [], processes: [], file: [], lineage: [] };
for (let time = 0; time < Number(repeats); time += 1) {
  await page.goto(new URL("/", url).href);
  await page.waitForSelector("[role=grid] .line a");
  clicks["run"]?.push(await until(page, "[role=grid] .line a", "[role=tabpanel] .files, [role=tabpanel] .columns"));
  clicks["processes"]?.push(await until(page, "[role=tab]:nth-child(2)", ".lines .line"));
  await page.goto(new URL(`/lineage?path=${encodeURIComponent(path)}&as=list`, url).href);
  await page.waitForSelector("h1 a");
  clicks["file"]?.push(await until(page, "h1 a", "section.version [role=tab]"));
  clicks["lineage"]?.push(await until(page, "nav[aria-label='About this file'] a", ".drawing canvas"));
}
for (const [view, times] of Object.entries(clicks)) report(`click to answer, ${view}`, times, "ms");

await page.goto(new URL(`/lineage?path=${encodeURIComponent(wide ?? path)}&direction=${wide ? "uses" : "of"}&level=process&nodes=5000`, url).href);
await page.waitForSelector(".drawing canvas", { timeout: 60_000 });
await page.waitForTimeout(3000);
const nodes = await page.locator("p > span").first().innerText();
const rates: number[] = [];
for (let time = 0; time < Number(repeats); time += 1) rates.push(await pan(browser, page, ".canvas"));
report(`pan of ${nodes}`, rates, "frames per second");
await browser.close();
