/**
 * Shows the part of a large graph that a camera sees, and is quick while the camera moves.
 *
 * The graph is painted with a margin around the view. While the camera moves within the margin, the
 * painting is only copied. A camera that leaves it, or a new look, has the graph painted again.
 * Another scale shows the old painting larger or smaller, until the camera rests.
 */
import { type Camera, type Size } from "./camera.ts";
import type { Dots } from "./dots.ts";
import { paint, type Look } from "./paint.ts";

/** Pixels around the view that are painted, too. */
const MARGIN = 256;
/** Milliseconds without another scale, after which the painting becomes sharp. */
const REST = 80;

export interface Scene {
  dots: Dots;
  camera: Camera;
  look: Look;
}

export class Panorama {
  private readonly painting = document.createElement("canvas");
  private painted: Camera | null = null;
  private frame = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private size: Size = { width: 0, height: 0 };

  /** `scene` says what to show, each time that a frame is drawn. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scene: () => Scene | null,
  ) {}

  /** The next frame shows the camera of then. */
  show(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** The next frame is painted anew, since the graph, its look or the size has changed. */
  renew(): void {
    this.painted = null;
    this.show();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
  }

  private draw(): void {
    const scene = this.scene();
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!scene || !context) return;
    const { camera, look } = scene;
    this.fitCanvas(look.density);
    if (!this.painted || !this.covers(this.painted, camera)) this.paint(scene);
    if (!this.painted) return;
    const ratio = camera.scale / this.painted.scale;
    if (ratio !== 1) {
      clearTimeout(this.rest);
      this.rest = setTimeout(() => {
        this.renew();
      }, REST);
    }
    const [right, down] = this.offset(this.painted, camera);
    const { width, height } = this.painting;
    // Whole device pixels keep a moved painting as sharp as it is.
    const x = Math.round(this.canvas.width / 2 + right * look.density - (width * ratio) / 2);
    const y = Math.round(this.canvas.height / 2 + down * look.density - (height * ratio) / 2);
    context.drawImage(this.painting, x, y, width * ratio, height * ratio);
  }

  private fitCanvas(density: number): void {
    this.size = { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
    const width = Math.round(this.size.width * density);
    const height = Math.round(this.size.height * density);
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.painted = null;
  }

  /** How far the middle of the painting is from the middle of the view, in CSS pixels. */
  private offset(painted: Camera, camera: Camera): [number, number] {
    return [(painted.x - camera.x) * camera.scale, (camera.y - painted.y) * camera.scale];
  }

  /** True if the painting shows all that the camera sees. */
  private covers(painted: Camera, camera: Camera): boolean {
    const ratio = camera.scale / painted.scale;
    const [right, down] = this.offset(painted, camera);
    const spare = (length: number) => ((length + 2 * MARGIN) * ratio - length) / 2;
    return Math.abs(right) <= spare(this.size.width) && Math.abs(down) <= spare(this.size.height);
  }

  private paint({ dots, camera, look }: Scene): void {
    clearTimeout(this.rest);
    const size = { width: this.size.width + 2 * MARGIN, height: this.size.height + 2 * MARGIN };
    this.painting.width = Math.round(size.width * look.density);
    this.painting.height = Math.round(size.height * look.density);
    const context = this.painting.getContext("2d", { alpha: false });
    if (!context) return;
    paint(context, dots, camera, size, look);
    this.painted = camera;
  }
}
