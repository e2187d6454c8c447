/**
 * The reader's preferences: the theme, and filters saved under a name.
 *
 * They are stored in a cookie. `backstory serve` listens on a free port at each start. The
 * browser's local storage belongs to one port, but a cookie belongs to the host on every port.
 */
export type Theme = "auto" | "light" | "dark";

export interface SavedFilter {
  name: string;
  /** The query of the page of runs, without `?`. */
  query: string;
}

export interface Preferences {
  theme: Theme;
  filters: SavedFilter[];
}

const NAME = "backstory_page";
/** Browsers store at least 4,096 bytes for a cookie with its name and attributes. */
const LIMIT = 3800;

export function readPreferences(cookies: string): Preferences {
  const preferences: Preferences = { theme: "auto", filters: [] };
  const found = cookies.split("; ").find((cookie) => cookie.startsWith(`${NAME}=`));
  if (!found) return preferences;
  try {
    const stored = JSON.parse(decodeURIComponent(found.slice(NAME.length + 1))) as Partial<Preferences>;
    if (stored.theme === "light" || stored.theme === "dark") preferences.theme = stored.theme;
    if (Array.isArray(stored.filters)) {
      preferences.filters = stored.filters.filter((filter) => typeof filter.name === "string" && typeof filter.query === "string");
    }
  } catch {
    // Another program on this host may have set a cookie with this name. Then the defaults apply.
  }
  return preferences;
}

/** Returns the cookie, or `null` if the filters are too long for one. */
export function writePreferences(preferences: Preferences): string | null {
  const cookie = `${NAME}=${encodeURIComponent(JSON.stringify(preferences))}; Path=/; Max-Age=31536000; SameSite=Strict`;
  return cookie.length <= LIMIT ? cookie : null;
}
