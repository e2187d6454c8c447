/**
 * The addresses of the page's views. Each can be shared, because it holds all that the view needs.
 */
import { queryString, type Parameters } from "../api/client.ts";
import { decodeBytes } from "../text/bytes.ts";

export const VIEWS = ["home", "file", "lineage", "run", "job", "scene", "compare", "status", "live"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  view: View | "unknown";
  /** The id of the run in `/run/ID`. */
  id: string;
  query: Map<string, string>;
}

export function parseQuery(search: string): Map<string, string> {
  const query = new Map<string, string>();
  for (const part of search.replace(/^\?/, "").split("&")) {
    if (!part) continue;
    const at = part.indexOf("=");
    const name = decodeBytes(at < 0 ? part : part.slice(0, at));
    if (name !== "token") query.set(name, at < 0 ? "" : decodeBytes(part.slice(at + 1)));
  }
  return query;
}

export function parseRoute(pathname: string, search: string): Route {
  const query = parseQuery(search);
  const [first = "", second = "", ...rest] = pathname.replace(/^\//, "").split("/");
  const id = decodeBytes(second);
  if (rest.length === 0) {
    if (first === "" || (first === "runs" && !id)) return { view: "home", id: "", query };
    if (first === "run" && id) return { view: "run", id, query };
    const view = VIEWS.find((known) => known === first && known !== "home" && known !== "run");
    if (view && !id) return { view, id: "", query };
  }
  return { view: "unknown", id: "", query };
}

export const to = {
  home: (filter: Parameters = {}) => `/${queryString(filter)}`,
  file: (path: string, more: Parameters = {}) => `/file${queryString({ path, ...more })}`,
  lineage: (subject: Parameters) => `/lineage${queryString(subject)}`,
  run: (id: string, more: Parameters = {}) => `/run/${encodeURIComponent(id)}${queryString(more)}`,
  job: (launcher: string, id: string) => `/job${queryString({ launcher, id })}`,
  scene: (subject: Parameters) => `/scene${queryString(subject)}`,
  compare: (a?: string | null, b?: string | null) => `/compare${queryString({ a, b })}`,
  status: (more: Parameters = {}) => `/status${queryString(more)}`,
  live: () => "/live",
};
