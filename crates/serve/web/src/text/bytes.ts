/**
 * Percent-encoding of strings that represent bytes.
 *
 * The API writes a byte 0xNN that is not UTF-8 as the lone surrogate U+DCNN. `encodeURIComponent`
 * throws on these; here each becomes `%NN`, the byte itself.
 */
const LOW = 0xdc00;

export function encodeBytes(text: string): string {
  let result = "";
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code >= LOW + 0x80 && code <= LOW + 0xff) result += `%${(code - LOW).toString(16).toUpperCase()}`;
    else if (code >= 0xd800 && code <= 0xdfff) result += "%EF%BF%BD";
    else result += encodeURIComponent(character);
  }
  // These characters stay unencoded, so that a path is readable in the address.
  return result.replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%40", "@");
}

/** Returns the length of the valid UTF-8 sequence at `start`, or 0. */
function sequence(bytes: number[], start: number): number {
  const first = bytes[start] ?? 0;
  const length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (length === 0 || start + length > bytes.length) return 0;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes.slice(start, start + length)));
    return length;
  } catch {
    return 0;
  }
}

export function decodeBytes(encoded: string): string {
  const bytes: number[] = [];
  const text = encoded.replaceAll("+", " ");
  for (let at = 0; at < text.length; at += 1) {
    const hex = /^%[0-9a-fA-F]{2}/.exec(text.slice(at, at + 3));
    if (hex) {
      bytes.push(Number.parseInt(hex[0].slice(1), 16));
      at += 2;
    } else {
      bytes.push(...new TextEncoder().encode(text[at]));
    }
  }
  let result = "";
  for (let at = 0; at < bytes.length; ) {
    const length = sequence(bytes, at);
    if (length === 0) result += String.fromCharCode(LOW + (bytes[at] ?? 0));
    else result += new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes.slice(at, at + length)));
    at += length || 1;
  }
  return result;
}
