/** Pointer, wheel and fingers over a drawing: what they mean. */
import type { Place } from "./camera.ts";

export interface Meanings {
  move: (right: number, down: number) => void;
  zoom: (factor: number, at: Place) => void;
  /** The pointer stands at a place, or (null) has left, or moves the drawing. */
  point: (at: Place | null) => void;
  click: (at: Place) => void;
  doubleClick: (at: Place) => void;
}

/** A pointer that moved less, in pixels, has clicked. */
const STILL = 4;

/** Listens until the returned function is called. */
export function gestures(element: HTMLElement, meanings: Meanings): () => void {
  const pressed = new Map<number, Place>();
  let travelled = 0;
  const stop = new AbortController();
  const options = { signal: stop.signal };

  const place = (event: MouseEvent): Place => {
    const { left, top } = element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const span = () => {
    const [a, b] = [...pressed.values()];
    return a && b ? { far: Math.hypot(a.x - b.x, a.y - b.y), middle: { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 } } : null;
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (pressed.size === 0) travelled = 0;
    pressed.set(event.pointerId, place(event));
    element.setPointerCapture(event.pointerId);
  }, options);
  element.addEventListener("pointermove", (event) => {
    const now = place(event);
    const last = pressed.get(event.pointerId);
    if (!last) {
      meanings.point(now);
      return;
    }
    const before = span();
    pressed.set(event.pointerId, now);
    const after = span();
    travelled += Math.hypot(now.x - last.x, now.y - last.y);
    if (travelled < STILL) return;
    meanings.point(null);
    if (before && after) {
      meanings.zoom(after.far / Math.max(1, before.far), after.middle);
      meanings.move(after.middle.x - before.middle.x, after.middle.y - before.middle.y);
    } else meanings.move(now.x - last.x, now.y - last.y);
  }, options);
  element.addEventListener("pointerup", (event) => {
    if (!pressed.delete(event.pointerId) || travelled >= STILL) return;
    meanings.click(place(event));
  }, options);
  element.addEventListener("pointercancel", (event) => {
    pressed.delete(event.pointerId);
  }, options);
  element.addEventListener("pointerleave", () => {
    if (pressed.size === 0) meanings.point(null);
  }, options);
  element.addEventListener("dblclick", (event) => {
    meanings.doubleClick(place(event));
  }, options);
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 30);
    meanings.zoom(Math.exp(-Math.max(-200, Math.min(200, pixels)) / 300), place(event));
  }, { ...options, passive: false });
  return () => {
    stop.abort();
  };
}
