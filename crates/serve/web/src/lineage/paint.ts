/**
 * Paints dots and lines on a canvas.
 *
 * Without a graphics processor, WebGL (sigma.js) took half a second for 5,000 dots and 9,500 lines.
 * Here the lines of one kind are one path, and the dots of one kind are copies of one picture.
 */
import type { GraphLink } from "../api/types.ts";
import { onScreen, type Camera, type Size } from "./camera.ts";
import { grown, labelled, type Dot, type Dots, type Line } from "./dots.ts";
import type { Reach } from "./reach.ts";

/** Colours of tokens.css. */
export interface Inks {
  ground: string;
  ink: string;
  accent: string;
  faint: string;
  line: string;
  own: string;
  system: string;
  step: string;
}

export interface Look {
  inks: Inks;
  lit: Reach | null;
  chosen: string | null;
  /** How much larger the picture is than the one that shows all. */
  zoom: number;
  /** Device pixels for one CSS pixel. */
  density: number;
}

type Context = CanvasRenderingContext2D;

/** A path with all lines of a graph at once takes a time that grows faster than their number. */
const LINES_OF_A_PATH = 1000;

function strokeLines(context: Context, lines: readonly Line[], camera: Camera, size: Size): void {
  let open = 0;
  for (const { from, to } of lines) {
    const a = onScreen(camera, size, from);
    const b = onScreen(camera, size, to);
    if (Math.max(a.x, b.x) < 0 || Math.min(a.x, b.x) > size.width || Math.max(a.y, b.y) < 0 || Math.min(a.y, b.y) > size.height) continue;
    if (open === 0) context.beginPath();
    context.moveTo(a.x, a.y);
    context.lineTo(b.x, b.y);
    open += 1;
    if (open < LINES_OF_A_PATH) continue;
    context.stroke();
    open = 0;
  }
  if (open > 0) context.stroke();
}

function paintLines(context: Context, dots: Dots, camera: Camera, size: Size, { inks, lit }: Look): void {
  const shown = (links: Set<GraphLink>) => dots.lines.filter(({ link }) => links.has(link));
  const lines = lit ? shown(lit.links) : dots.lines;
  context.strokeStyle = lit ? inks.accent : inks.line;
  context.lineWidth = lit ? 1.5 : 0.8;
  const plain = lines.filter(({ link }) => link.certainty !== "possible");
  strokeLines(context, plain.filter(({ link }) => link.bytes !== "none"), camera, size);
  context.setLineDash([1, 4]);
  strokeLines(context, plain.filter(({ link }) => link.bytes === "none"), camera, size);
  context.setLineDash([5, 3]);
  strokeLines(context, lines.filter(({ link }) => link.certainty === "possible"), camera, size);
  context.setLineDash([]);
}

/** A picture of a dot, to be copied. */
function picture(radius: number, colour: string, density: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.ceil((2 * radius + 2) * density);
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.fillStyle = colour;
  context.arc(canvas.width / 2, canvas.height / 2, radius * density, 0, 2 * Math.PI);
  context.fill();
  return canvas;
}

function paintDots(context: Context, dots: readonly Dot[], camera: Camera, size: Size, colour: (dot: Dot) => string, look: Look): void {
  const pictures = new Map<string, HTMLCanvasElement>();
  for (const dot of dots) {
    const { x, y } = onScreen(camera, size, dot);
    const radius = grown(dot.id === look.chosen ? 8 : dot.radius, dot.id === look.chosen ? 1 : look.zoom);
    if (x < -radius || x > size.width + radius || y < -radius || y > size.height + radius) continue;
    const kind = `${colour(dot)} ${String(radius)}`;
    const copy = pictures.get(kind) ?? picture(radius, colour(dot), look.density);
    pictures.set(kind, copy);
    const side = copy.width / look.density;
    context.drawImage(copy, x - side / 2, y - side / 2, side, side);
  }
}

/** The labels of more lit dots than this would cover each other. */
const LIT_LABELS = 60;

function paintLabels(context: Context, dots: Dots, camera: Camera, size: Size, look: Look): void {
  const { lit, chosen, zoom } = look;
  const first = new Set([...(chosen ? [chosen] : []), ...(lit && lit.nodes.size <= LIT_LABELS ? lit.nodes : [])]);
  context.font = "12px ui-monospace, DejaVu Sans Mono, Liberation Mono, monospace";
  context.textBaseline = "middle";
  context.fillStyle = look.inks.ink;
  context.strokeStyle = look.inks.ground;
  context.lineWidth = 3;
  context.lineJoin = "round";
  for (const dot of labelled(dots, camera.scale, zoom, first)) {
    if (lit && !lit.nodes.has(dot.id) && dot.id !== chosen) continue;
    const { x, y } = onScreen(camera, size, dot);
    if (x < -300 || x > size.width || y < -10 || y > size.height + 10) continue;
    const left = x + grown(dot.radius, zoom) + 4;
    context.strokeText(dot.label, left, y);
    context.fillText(dot.label, left, y);
  }
}

/** Fills a canvas of this size with what the camera sees. */
export function paint(context: Context, dots: Dots, camera: Camera, size: Size, look: Look): void {
  const { inks, lit, chosen } = look;
  context.setTransform(look.density, 0, 0, look.density, 0, 0);
  context.fillStyle = inks.ground;
  context.fillRect(0, 0, size.width, size.height);
  paintLines(context, dots, camera, size, look);
  const all = [...dots.byId.values()];
  const colour = (dot: Dot) => (dot.id === chosen ? inks.accent : inks[dot.tone]);
  if (lit) {
    paintDots(context, all.filter(({ id }) => !lit.nodes.has(id) && id !== chosen), camera, size, () => inks.faint, look);
    paintDots(context, all.filter(({ id }) => lit.nodes.has(id) || id === chosen), camera, size, colour, look);
  } else paintDots(context, all, camera, size, colour, look);
  paintLabels(context, dots, camera, size, look);
}
