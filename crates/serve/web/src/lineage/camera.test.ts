import { expect, test } from "vitest";
import { fitted, inLayout, moved, onScreen, zoomed } from "./camera.ts";
import type { Layout } from "./layout.ts";

const size = { width: 400, height: 200 };
const box = { width: 1, height: 1, label: "" };
const layout: Layout = new Map([["a", { ...box, x: -10, y: 5 }], ["b", { ...box, x: 30, y: -15 }]]);

test("a fitted camera sees every node, with y upwards", () => {
  const camera = fitted(layout, size, 20);
  expect(onScreen(camera, size, { x: -10, y: 5 })).toEqual({ x: 40, y: 20 });
  expect(onScreen(camera, size, { x: 30, y: -15 })).toEqual({ x: 360, y: 180 });
});

test("a moved picture is moved by these pixels, and a point leads back to its place", () => {
  const camera = moved(fitted(layout, size, 20), 7, -9);
  expect(onScreen(camera, size, { x: -10, y: 5 })).toEqual({ x: 47, y: 11 });
  expect(inLayout(camera, size, { x: 47, y: 11 })).toEqual({ x: -10, y: 5 });
});

test("the point under the pointer stays where it is while the scale changes", () => {
  const camera = fitted(layout, size);
  const pointer = { x: 91, y: 33 };
  const point = inLayout(camera, size, pointer);
  const after = onScreen(zoomed(camera, size, camera.scale * 3, pointer), size, point);
  expect(after.x).toBeCloseTo(pointer.x);
  expect(after.y).toBeCloseTo(pointer.y);
});
