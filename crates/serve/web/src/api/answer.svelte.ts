import { Refusal } from "./client.ts";

/** One request to the server, and the present state of its response. */
export interface Answer<Value> {
  /**
   * The last response. It stays while a newer request is open, so that the page does not flicker.
   */
  readonly value: Value | undefined;
  readonly refusal: Refusal | undefined;
  readonly waiting: boolean;
  again(): void;
}

/**
 * Sends the request again whenever a value that `question` reads changes. Call it while a component
 * is created. If `question` returns `null`, nothing is requested.
 */
export function ask<Value>(question: (signal: AbortSignal) => Promise<Value> | null): Answer<Value> {
  let value = $state.raw<Value | undefined>();
  let refusal = $state.raw<Refusal | undefined>();
  let waiting = $state(true);
  let round = $state(0);

  $effect(() => {
    void round;
    const abort = new AbortController();
    const asked = question(abort.signal);
    if (!asked) {
      value = undefined;
      refusal = undefined;
      waiting = false;
      return;
    }
    waiting = true;
    asked.then(
      (answer) => {
        if (abort.signal.aborted) return;
        value = answer;
        refusal = undefined;
        waiting = false;
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        value = undefined;
        refusal = error instanceof Refusal ? error : new Refusal(0, String(error));
        waiting = false;
      },
    );
    return () => {
      abort.abort();
    };
  });

  return {
    get value() {
      return value;
    },
    get refusal() {
      return refusal;
    },
    get waiting() {
      return waiting;
    },
    again() {
      round += 1;
    },
  };
}
