import { expect, test } from "vitest";
import { neighbour } from "./keys.ts";
import { adjacency } from "./reach.ts";

const box = (x: number, y: number) => ({ x, y, width: 10, height: 10, label: "" });
const layout = new Map([["a", box(0, 0)], ["b", box(0, 40)], ["c", box(100, 10)]]);
const ways = adjacency({ roots: new Set(), nodes: new Map(), links: [{ from: "a", to: "c", flow: "used", certainty: "seen", start: 0, end: 1 }, { from: "b", to: "c", flow: "used", certainty: "seen", start: 0, end: 1 }] });

test("arrows follow the flow of data, and go up and down in a layer", () => {
  expect([neighbour("a", "ArrowRight", ways, layout), neighbour("c", "ArrowLeft", ways, layout), neighbour("a", "ArrowDown", ways, layout), neighbour("a", "ArrowUp", ways, layout), neighbour("a", "ArrowLeft", ways, layout)]).toEqual(["c", "a", "b", null, null]);
});
