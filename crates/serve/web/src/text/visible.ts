/**
 * Makes every character of a recorded string visible.
 *
 * A file name may hold any byte except `/` and NUL: newlines, escape sequences, bidirectional
 * marks, bytes that are not UTF-8. These are shown as escapes and marked as such. They never have
 * an effect on the page.
 */
export interface Piece {
  text: string;
  /** The piece is the escape of a character that is not shown itself. */
  escaped: boolean;
}

/**
 * Control and format characters (bidirectional marks, zero widths), separators, lone surrogates,
 * and spaces that are not U+0020 or stand at an end.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|(?! )\p{Zs}|^ +| +$/gu;

const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\u001b": "\\e", "\0": "\\0" };

function escapeCharacter(character: string): string {
  const short = SHORT[character];
  if (short) return short;
  const code = character.codePointAt(0) ?? 0;
  // As in Python's surrogateescape, the byte 0xNN is written as U+DCNN.
  if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

/** The same for a line of text, in which tabs, and spaces at the ends, are ordinary. */
const UNSAFE_IN_TEXT = /(?!\t)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|(?! )\p{Zs}/gu;

export function pieces(text: string, inline = false): Piece[] {
  const result: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(inline ? UNSAFE_IN_TEXT : UNSAFE)) {
    if (match.index > end) result.push({ text: text.slice(end, match.index), escaped: false });
    result.push({ text: [...match[0]].map(escapeCharacter).join(""), escaped: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) result.push({ text: text.slice(end), escaped: false });
  return result;
}

/** Returns the pieces as one string, for titles, labels of graphs and exported drawings. */
export function visible(text: string): string {
  return pieces(text)
    .map((piece) => piece.text)
    .join("");
}
