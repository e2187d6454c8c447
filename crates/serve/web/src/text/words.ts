/** Formats numbers, times and commands as text. */
const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"];

export function bytes(size: number): string {
  const count = Math.round(size);
  if (count < 1000) return count === 1 ? "1 byte" : `${String(count)} bytes`;
  let value = count;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${UNITS[unit] ?? ""}`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Returns "1 file" or "2,300 files". The third parameter is the plural of an irregular word. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "unknown";
  if (seconds < 0.001) return `${String(Math.round(seconds * 1e6))} µs`;
  if (seconds < 0.9995) return `${String(Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return `${String(minutes)} min ${String(Math.round(seconds) % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${String(hours)} h ${String(minutes % 60)} min`;
  return `${String(Math.floor(hours / 24))} d ${String(hours % 24)} h`;
}

const two = (value: number): string => String(value).padStart(2, "0");

export function day(seconds: number): string {
  const date = new Date(seconds * 1000);
  return `${String(date.getFullYear())}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function moment(seconds: number): string {
  return `${day(seconds)} ${clock(seconds)}`;
}

export function ago(seconds: number, now = Date.now() / 1000): string {
  const passed = now - seconds;
  if (passed < 0) return moment(seconds);
  if (passed < 45) return "just now";
  if (passed < 5400) return `${String(Math.max(1, Math.round(passed / 60)))} min ago`;
  if (passed < 129_600) return `${String(Math.round(passed / 3600))} h ago`;
  if (passed < 30 * 86_400) return `${String(Math.round(passed / 86_400))} days ago`;
  return day(seconds);
}

/** Quotes a word so that a POSIX shell reads the same bytes back. */
function quote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (!/[\u0000-\u001f\u007f\udc80-\udcff]/.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const escaped = [...word].map((character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === "\n") return "\\n";
    if (character === "'" || character === "\\") return `\\${character}`;
    if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`;
    return code < 32 || code === 127 ? `\\x${two(0).slice(1)}${code.toString(16)}`.replace(/x0(..)$/, "x$1") : character;
  });
  return `$'${escaped.join("")}'`;
}

export function shell(argv: readonly string[]): string {
  return argv.map(quote).join(" ");
}

/** Removes the program's directory from a shell line: `/usr/bin/cc -c a.c` becomes `cc -c a.c`. */
export function shortLine(line: string): string {
  return line.replace(/^\/(?:[^\s/']+\/)*(?=[^\s/']+(?:\s|$))/, "");
}

/** Makes a sentence of a message of the command line, which starts small and has no full stop. */
export function sentence(message: string): string {
  const begun = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?:…]$/.test(begun) ? begun : `${begun}.`;
}
