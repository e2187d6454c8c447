/** Frames a second while a view is dragged. Used by measure.ts. */
import type { Browser, Page } from "playwright-core";

interface TraceEvent {
  name: string;
  ph: string;
}

/** Counts the frames that the compositor draws during `work`. A frame without a change has none. */
async function framesDrawn(browser: Browser, work: () => Promise<void>): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => {
    events.push(...(value as unknown as TraceEvent[]));
  });
  await session.send("Tracing.start", { traceConfig: { includedCategories: ["viz"] }, transferMode: "ReportEvents" });
  await work();
  const complete = new Promise((resolve) => {
    session.once("Tracing.tracingComplete", resolve);
  });
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  return events.filter(({ name, ph }) => name === "Display::DrawAndSwap" && (ph === "X" || ph === "B")).length;
}

/** Drags an element in wide curves for two seconds, with a movement every 16 ms, and back. */
export async function pan(browser: Browser, page: Page, selector: string): Promise<number> {
  const box = await page.locator(selector).boundingBox();
  if (!box) throw new Error(`there is no ${selector}`);
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await page.mouse.move(middle.x, middle.y);
  await page.mouse.down();
  let seconds = 1;
  const frames = await framesDrawn(browser, async () => {
    const start = performance.now();
    const sent: Promise<void>[] = [];
    for (let step = 0; performance.now() - start < 2000; step += 1) {
      // Not awaited: a hand does not wait for the page, either.
      sent.push(page.mouse.move(middle.x + Math.sin(step / 18) * 250, middle.y + Math.cos(step / 14) * 120 - 120));
      await new Promise((resolve) => setTimeout(resolve, start + (step + 1) * 16 - performance.now()));
    }
    await Promise.all(sent);
    // The next measurement sees the same part.
    await page.mouse.move(middle.x, middle.y);
    seconds = (performance.now() - start) / 1000;
  });
  await page.mouse.up();
  return frames / seconds;
}
