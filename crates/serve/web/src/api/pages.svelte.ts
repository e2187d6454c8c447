import { get, Refusal, type Parameters } from "./client.ts";

interface Source {
  path: string;
  parameters: Parameters;
  /** The field of the response that holds the rows. */
  field: string;
}

/** A list whose next page is fetched when the reader scrolls near its end. */
export interface Pages<Row, Page = unknown> {
  readonly rows: Row[];
  /** The last page, for what it has beside its rows. */
  readonly page: Page | undefined;
  readonly total: number;
  readonly waiting: boolean;
  readonly refusal: Refusal | undefined;
  more(): void;
  again(): void;
}

/**
 * Fetches the first page again whenever a value that `source` reads changes. Call it while a
 * component is created.
 */
export function pages<Row, Page = unknown>(source: () => Source | null, first = 200, next = 1000): Pages<Row, Page> {
  let rows = $state.raw<Row[]>([]);
  let last = $state.raw<Page | undefined>();
  let total = $state(0);
  let waiting = $state(true);
  let refusal = $state.raw<Refusal | undefined>();
  let round = $state(0);
  let cursor: string | null = null;
  let abort: AbortController | undefined;
  let asked: Source | null = null;

  function load(signal: AbortSignal, size: number): void {
    if (!asked) return;
    const { path, parameters, field } = asked;
    const fresh = cursor === null;
    waiting = true;
    get<Record<string, unknown>>(path, { ...parameters, limit: size, cursor }, signal).then(
      (page) => {
        if (signal.aborted) return;
        const got = page[field] as Row[];
        last = page as Page;
        rows = fresh ? got : [...rows, ...got];
        cursor = (page["next"] as string | null | undefined) ?? null;
        total = Number(page["total"] ?? rows.length);
        refusal = undefined;
        waiting = false;
      },
      (error: unknown) => {
        if (signal.aborted) return;
        refusal = error instanceof Refusal ? error : new Refusal(0, String(error));
        if (fresh) {
          rows = [];
          last = undefined;
        }
        waiting = false;
      },
    );
  }

  $effect(() => {
    void round;
    asked = source();
    const mine = new AbortController();
    abort = mine;
    cursor = null;
    if (asked) load(mine.signal, first);
    else waiting = false;
    return () => {
      mine.abort();
    };
  });

  return {
    get rows() {
      return rows;
    },
    get page() {
      return last;
    },
    get total() {
      return total;
    },
    get waiting() {
      return waiting;
    },
    get refusal() {
      return refusal;
    },
    more() {
      if (!waiting && cursor !== null && abort) load(abort.signal, next);
    },
    again() {
      round += 1;
    },
  };
}
