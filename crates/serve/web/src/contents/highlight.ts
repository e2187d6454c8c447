/** Colours source text. The result is tokens, never HTML: the page shows each as a text node. */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cmake from "highlight.js/lib/languages/cmake";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import julia from "highlight.js/lib/languages/julia";
import latex from "highlight.js/lib/languages/latex";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import perl from "highlight.js/lib/languages/perl";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = {
  bash, c, cmake, cpp, css, diff, go, ini, java, javascript, json, julia, latex, makefile, markdown, perl, python, r, rust, sql, typescript, xml, yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** File name endings and names that highlight.js does not know. */
const ENDINGS: Record<string, string> = { in: "bash", h: "c", hh: "cpp", mjs: "javascript", cjs: "javascript", tex: "latex", bib: "latex", toml: "ini", cfg: "ini", conf: "ini", svg: "xml", ipynb: "json", smk: "python", mk: "makefile", lock: "ini", awk: "perl", pyi: "python", jl: "julia" };
const NAMES: Record<string, string> = { makefile: "makefile", gnumakefile: "makefile", "cmakelists.txt": "cmake", snakefile: "python", dockerfile: "bash", configure: "bash", "cargo.lock": "ini" };

/** Text with more characters than this is shown without colours, so that it appears at once. */
const MOST = 400_000;

export interface Token {
  text: string;
  /** The token class of highlight.js, such as `keyword`; empty for plain text. */
  scope: string;
}

export function languageOf(path: string, firstLine: string): string | null {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const known = NAMES[name];
  if (known) return known;
  const ending = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : "";
  const language = ENDINGS[ending] ?? (hljs.getLanguage(ending) ? ending : null);
  if (language) return language;
  const program = /^#!.*?\b(python|perl|node|Rscript|sh|bash|dash|zsh|awk)/.exec(firstLine)?.[1];
  if (!program) return null;
  return { python: "python", perl: "perl", node: "javascript", Rscript: "r", awk: "perl" }[program] ?? "bash";
}

interface Node {
  scope?: string;
  children: (Node | string)[];
}

function walk(node: Node, scope: string, lines: Token[][]): void {
  for (const child of node.children) {
    if (typeof child !== "string") {
      walk(child, child.scope?.split(".")[0] ?? scope, lines);
      continue;
    }
    child.split("\n").forEach((text, index) => {
      if (index > 0) lines.push([]);
      if (text) lines.at(-1)?.push({ text, scope });
    });
  }
}

/** Returns the lines of a text, each as tokens. */
export function highlight(lines: readonly string[], path: string): Token[][] {
  const plain = () => lines.map((text) => [{ text, scope: "" }]);
  const language = languageOf(path, lines[0] ?? "");
  if (!language || lines.reduce((sum, line) => sum + line.length, 0) > MOST) return plain();
  const root = hljs.highlight(lines.join("\n"), { language, ignoreIllegals: true })._emitter as unknown as { root: Node };
  const result: Token[][] = [[]];
  walk(root.root, "", result);
  return result.length === lines.length ? result : plain();
}
