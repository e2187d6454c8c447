/**
 * Which part of the large graph is seen, and where.
 *
 * The layout's y points up, the screen's y down. All distances on the screen are CSS pixels.
 */
import type { Layout } from "./layout.ts";

export interface Camera {
  /** The point of the layout in the middle of the view. */
  x: number;
  y: number;
  /** Pixels for one unit of the layout. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Place {
  x: number;
  y: number;
}

/** The camera that sees all of the layout, with room around it. */
export function fitted(layout: Layout, size: Size, room = 32): Camera {
  const boxes = [...layout.values()];
  if (boxes.length === 0) return { x: 0, y: 0, scale: 1 };
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of boxes) {
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [low, high] = [Math.min(low, y), Math.max(high, y)];
  }
  const across = Math.max(1, size.width - 2 * room) / Math.max(1, right - left);
  const down = Math.max(1, size.height - 2 * room) / Math.max(1, high - low);
  return { x: (left + right) / 2, y: (low + high) / 2, scale: Math.min(across, down) };
}

export function onScreen(camera: Camera, size: Size, { x, y }: Place): Place {
  return { x: size.width / 2 + (x - camera.x) * camera.scale, y: size.height / 2 - (y - camera.y) * camera.scale };
}

export function inLayout(camera: Camera, size: Size, { x, y }: Place): Place {
  return { x: camera.x + (x - size.width / 2) / camera.scale, y: camera.y - (y - size.height / 2) / camera.scale };
}

/** The camera after the picture was moved by so many pixels. */
export function moved(camera: Camera, right: number, down: number): Camera {
  return { ...camera, x: camera.x - right / camera.scale, y: camera.y + down / camera.scale };
}

/** The camera with another scale, under which the point at `fixed` stays where it is. */
export function zoomed(camera: Camera, size: Size, scale: number, fixed: Place): Camera {
  const point = inLayout(camera, size, fixed);
  const at = onScreen({ ...camera, scale }, size, point);
  return moved({ ...camera, scale }, fixed.x - at.x, fixed.y - at.y);
}
