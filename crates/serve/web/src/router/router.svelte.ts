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
  /** A parameter of the address, or the empty string. */
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

/** A screen reader and the keyboard start at the new view's heading, which may wait for an answer. */
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

/** Changes some parameters of the present address. Steps in between are not kept in the history unless `keep`. */
export function amend(changes: Parameters, keep = false): void {
  const merged: Parameters = Object.fromEntries(current.query);
  Object.assign(merged, changes);
  const href = location.pathname + queryString(merged);
  if (keep) history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  read();
}

/** Follows links of this page without loading it again. */
function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname.startsWith("/api/") || link.getAttribute("href")?.startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

export function startRouter(): void {
  // The token has become a cookie. It must not be seen, or shared with the address.
  if (/[?&]token=/.test(location.search)) {
    history.replaceState(null, "", location.pathname + queryString(Object.fromEntries(current.query)));
  }
  window.addEventListener("popstate", read);
  document.addEventListener("click", follow);
}
