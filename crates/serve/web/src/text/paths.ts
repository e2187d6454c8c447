/** Paths as a reader wants them: the name first in weight, the directory quiet. */
export interface PathParts {
  directory: string;
  name: string;
}

export function split(path: string): PathParts {
  const at = path.lastIndexOf("/", path.length - 2);
  return at < 0 ? { directory: "", name: path } : { directory: path.slice(0, at + 1), name: path.slice(at + 1) };
}

/** The path as seen from `base`, if it is below it; otherwise the path itself. */
export function relative(path: string, base: string | null | undefined): string {
  if (!base || base === "/") return path;
  const prefix = base.endsWith("/") ? base : `${base}/`;
  return path.startsWith(prefix) && path.length > prefix.length ? path.slice(prefix.length) : path;
}

/** The directory that all paths share, without a slash at its end; empty if there is none but `/`. */
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
 * Keeps the start and the end of a text that is longer than `most` characters. `end` is the end's
 * share: a path is known by its end, a command by its start.
 */
export function middle(text: string, most: number, end = 0.6): string {
  if (text.length <= most) return text;
  const tail = Math.ceil((most - 1) * end);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`;
}
