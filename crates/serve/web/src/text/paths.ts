/** Paths for display: split into directory and name, relative, or shortened. */
export interface PathParts {
  directory: string;
  name: string;
}

export function split(path: string): PathParts {
  const at = path.lastIndexOf("/", path.length - 2);
  return at < 0 ? { directory: "", name: path } : { directory: path.slice(0, at + 1), name: path.slice(at + 1) };
}

/** Returns the path relative to `base` if it is below `base`; otherwise the path itself. */
export function relative(path: string, base: string | null | undefined): string {
  if (!base || base === "/") return path;
  const prefix = base.endsWith("/") ? base : `${base}/`;
  return path.startsWith(prefix) && path.length > prefix.length ? path.slice(prefix.length) : path;
}

/** Returns the common directory of all paths, without a slash at its end; empty if it is `/`. */
export function sharedDirectory(paths: readonly string[]): string {
  const first = paths[0];
  if (first === undefined) return "";
  let shared = split(first).directory;
  for (const path of paths) {
    while (shared && !path.startsWith(shared)) shared = split(shared).directory;
  }
  return shared.replace(/\/$/, "");
}

/**
 * Shortens a text with more than `most` characters to its start and its end. `end` is the share of
 * the end: a reader recognizes a path by its end, and a command by its start.
 */
export function middle(text: string, most: number, end = 0.6): string {
  if (text.length <= most) return text;
  const tail = Math.ceil((most - 1) * end);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`;
}
