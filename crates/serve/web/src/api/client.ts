/**
 * Requests to the API.
 *
 * Bytes of paths that are not UTF-8 are sent unchanged. A newer request aborts the older one by its
 * signal, and the response to the older request is never shown.
 */
import { encodeBytes } from "../text/bytes.ts";

export type Parameter = string | number | boolean | readonly string[] | null | undefined;
export type Parameters = Record<string, Parameter>;

/** A response that is an error, with the message that the command line prints. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
    /** The kind of error, as the API names it. */
    readonly code = "",
  ) {
    super(message);
    this.name = "Refusal";
  }
}

export function queryString(parameters: Parameters): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "") continue;
    for (const each of Array.isArray(value) ? (value as readonly string[]) : [value as string]) {
      parts.push(`${encodeURIComponent(name)}=${encodeBytes(String(each))}`);
    }
  }
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

export function address(path: string, parameters: Parameters = {}): string {
  return `/api/v1${path}${queryString(parameters)}`;
}

async function refusal(response: Response): Promise<Refusal> {
  try {
    const body = (await response.json()) as { error: { code?: string; message: string; hint?: string | null } };
    return new Refusal(response.status, body.error.message, body.error.hint ?? null, body.error.code);
  } catch {
    return new Refusal(response.status, `The server answered with status ${String(response.status)}.`);
  }
}

async function send(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, "The server does not answer.", "Is `backstory serve` still running? Start it again, and open the address that it prints.");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function get<Answer>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<Answer> {
  const response = await send(address(path, parameters), { headers: { accept: "application/json" }, signal: signal ?? null });
  return (await response.json()) as Answer;
}

/** The bytes of a version's content from an offset on, at most `most`, with that offset. */
export async function bytesOf(version: string, from: number, most: number, signal?: AbortSignal): Promise<{ from: number; bytes: Uint8Array }> {
  try {
    const range = `bytes=${String(from)}-${String(from + most - 1)}`;
    const response = await send(address(`/versions/${version}/content`), { headers: { range }, signal: signal ?? null });
    return { from, bytes: new Uint8Array(await response.arrayBuffer()) };
  } catch (error: unknown) {
    // An empty content, or one that ends before, has no such range.
    if (error instanceof Refusal && error.status === 416) return { from, bytes: new Uint8Array() };
    throw error;
  }
}

/** Calls `row` for each line of a streamed response. */
export async function stream<Row>(path: string, init: RequestInit & { parameters?: Parameters }, row: (row: Row) => void): Promise<void> {
  const { parameters, ...rest } = init;
  const response = await send(address(path, parameters), { ...rest, headers: { accept: "application/x-ndjson", "x-backstory": "1", ...rest.headers } });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (kept + value).split("\n");
    kept = lines.pop() ?? "";
    for (const line of lines) if (line) row(JSON.parse(line) as Row);
  }
  if (kept.trim()) row(JSON.parse(kept) as Row);
}

/** Fetches all rows of a paged response into one array, and calls `shown` after each page. */
export async function all<Row>(
  path: string,
  parameters: Parameters,
  field: string,
  shown: (rows: Row[], total: number, done: boolean) => void,
  signal: AbortSignal,
  most = 100_000,
): Promise<void> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const page: Record<string, unknown> = await get(path, { limit: 1000, ...parameters, cursor }, signal);
    rows.push(...(page[field] as Row[]));
    cursor = (page["next"] as string | null | undefined) ?? null;
    shown(rows, Number(page["total"] ?? rows.length), cursor === null || rows.length >= most);
  } while (cursor !== null && rows.length < most);
}
