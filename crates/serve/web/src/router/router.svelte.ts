import { queryString, type Parameters } from "../api/client.ts";
import { parseRoute, type Route } from "./route.ts";

let current = $state.raw<Route>(parseRoute(location.pathname, location.search));

function read(): void {
  current = parseRoute(location.pathname, location.search);
}

export const route = {
  get view() {
    return current.view;
  },
  get id() {
    return current.id;
  },
  /** Returns a parameter of the address, or the empty string. */
  param(name: string): string {
    return current.query.get(name) ?? "";
  },
  get query(): Map<string, string> {
    return current.query;
  },
};

export function go(href: string): void {
  history.pushState(null, "", href);
  read();
  window.scrollTo(0, 0);
  requestAnimationFrame(() => {
    focusHeading(location.href, 300);
  });
}

/**
 * Moves the focus to the heading of the new view, where a screen reader and the keyboard continue.
 * Waits up to `frames` frames for the heading, which may depend on a response.
 */
function focusHeading(href: string, frames: number): void {
  if (location.href !== href || frames === 0) return;
  const heading = document.querySelector<HTMLElement>("main h1");
  if (heading) heading.focus({ preventScroll: true });
  else {
    requestAnimationFrame(() => {
      focusHeading(href, frames - 1);
    });
  }
}

/**
 * Changes some parameters of the present address. With `keep`, the change is a new entry of the
 * browser's history; otherwise it replaces the present entry.
 */
export function amend(changes: Parameters, keep = false): void {
  const merged: Parameters = Object.fromEntries(current.query);
  Object.assign(merged, changes);
  const href = location.pathname + queryString(merged);
  if (keep) history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  read();
}

/** Follows a link within this page without loading the page again. */
function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname.startsWith("/api/") || link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

export function startRouter(): void {
  // The server has set a cookie. The token is removed from the address, where it could be seen.
  if (/[?&]token=/.test(location.search)) {
    history.replaceState(null, "", location.pathname + queryString(Object.fromEntries(current.query)));
  }
  window.addEventListener("popstate", read);
  document.addEventListener("click", follow);
}
