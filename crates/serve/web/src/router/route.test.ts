import { expect, test } from "vitest";
import { parseRoute, to } from "./route.ts";

const parse = (href: string) => {
  const [path = "", search = ""] = href.split("?");
  return parseRoute(path, search);
};

test("every view is found again by its address", () => {
  expect(parse(to.home({ status: "failed" }))).toEqual({ view: "home", id: "", query: new Map([["status", "failed"]]) });
  expect(parse(to.run("8sht36zx", { tab: "files" }))).toEqual({ view: "run", id: "8sht36zx", query: new Map([["tab", "files"]]) });
  for (const href of [to.file("/a"), to.lineage({ path: "/a" }), to.scene({ path: "/a" }), to.job("Open MPI", "71"), to.compare("a", "b"), to.status(), to.live()]) {
    expect(parse(href).view).toBe(href.slice(1).split("?")[0]);
  }
});

test("a hostile path comes back from the address as it was", () => {
  const path = "/tmp/<script>\n\u202e&a=b#\udcff";
  expect(parse(to.file(path)).query.get("path")).toBe(path);
});

test("an address of no view is unknown, and a token never becomes a parameter", () => {
  for (const href of ["/nothing", "/run", "/run/a/b", "/file/x", "/home"]) expect(parse(href).view).toBe("unknown");
  expect(parse("/?token=secret&text=a").query).toEqual(new Map([["text", "a"]]));
});
