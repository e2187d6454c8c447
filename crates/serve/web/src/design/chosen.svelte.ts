import { readPreferences, writePreferences, type SavedFilter, type Theme } from "./preferences.ts";

const stored = readPreferences(document.cookie);
const chosen = $state(stored);

/** Counts the changes of the theme. A canvas reads it to draw again with the new colours. */
const drawn = $state({ theme: 0 });

function keep(): boolean {
  const cookie = writePreferences($state.snapshot(chosen));
  if (cookie) document.cookie = cookie;
  return cookie !== null;
}

function apply(): void {
  if (chosen.theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen.theme;
  drawn.theme += 1;
}

export function startTheme(): void {
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (drawn.theme += 1));
}

export const preferences = {
  get theme(): Theme {
    return chosen.theme;
  },
  set theme(theme: Theme) {
    chosen.theme = theme;
    keep();
    apply();
  },
  get filters(): SavedFilter[] {
    return chosen.filters;
  },
  /** Saves a filter under a name. Returns false if the cookie has no room for it. */
  saveFilter(name: string, query: string): boolean {
    const before = chosen.filters;
    chosen.filters = [...before.filter((filter) => filter.name !== name), { name, query }];
    if (keep()) return true;
    chosen.filters = before;
    return false;
  },
  removeFilter(name: string): void {
    chosen.filters = chosen.filters.filter((filter) => filter.name !== name);
    keep();
  },
  /** A number that changes whenever the colours of the page change. */
  get colours(): number {
    return drawn.theme;
  },
};

/** Returns the present value of a colour of tokens.css, for a canvas. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
