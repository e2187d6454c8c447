/** A reader of the page: Chromium with one tab, and the problems and requests that it logged. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { inject } from "vitest";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Reader {
  page: Page;
  /** Messages of the browser: errors of scripts, and violations of the Content-Security-Policy. */
  complaints: string[];
  /** Hosts to which the page sent requests. */
  hosts: Set<string>;
  /** Opens an address of the page, such as `/status`. */
  open(address: string): Promise<void>;
  close(): Promise<void>;
}

export async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage"],
  });
}

export async function reader(browser: Browser, scheme: "light" | "dark" = "light", url = inject("stage").url): Promise<Reader> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: scheme, reducedMotion: "reduce", permissions: ["clipboard-read", "clipboard-write"] });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  const hosts = new Set<string>();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol.startsWith("http")) hosts.add(host);
  });
  await page.goto(url);
  await page.waitForSelector("main h1");
  return {
    page,
    complaints,
    hosts,
    async open(address) {
      await page.goto(new URL(address, url).href);
      await page.waitForSelector("main h1");
      await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => undefined);
    },
    close: () => context.close(),
  };
}

interface Violation {
  id: string;
  help: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** Returns the violations that axe-core finds, in a form that a failed test can print. */
export async function axe(page: Page): Promise<string[]> {
  // The debugger evaluates the script: the page's own policy would refuse an inserted script.
  await page.evaluate(axeSource);
  const found = await page.evaluate<Violation[]>(
    "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((result) => result.violations)",
  );
  return found.flatMap((violation) => violation.nodes.slice(0, 3).map((node) => `${violation.id}: ${violation.help}: ${node.html.slice(0, 200)}: ${node.failureSummary ?? ""}`));
}

/** Saves a screenshot in the directory BACKSTORY_SCREENSHOTS, if that variable is set. */
export async function keep(page: Page, name: string): Promise<void> {
  const directory = process.env["BACKSTORY_SCREENSHOTS"];
  if (directory) await page.screenshot({ path: join(directory, `${name}.png`) });
}
