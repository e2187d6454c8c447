/**
 * Records calls of functions in Node, for `backstory record --functions`.
 *
 * `backstory-functions.cjs` loads this file before the program. While Node compiles a module, the
 * functions whose names match get a statement where they begin, and one where they end. These look
 * up paths at which nothing can be: marks, which the recorder takes.
 *
 * Invariants:
 * - If anything here fails, the program runs without hooks.
 * - A module without such a function is compiled as it is. So is one that cannot be parsed.
 * - Lines keep their numbers. No mark throws.
 */
"use strict";

const MARK = "/dev/null/backstory/";
/** The object that the inserted statements use. */
const HOOK = "__backstory_functions";
/** The number of an interpreted function has the highest bit. */
const INTERPRETED = 0x80000000;

const { existsSync, readFileSync } = require("fs");
const { basename, dirname, extname, join } = require("path");
const { fileURLToPath, pathToFileURL } = require("url");
const Module = require("module");
const { isMainThread } = require("worker_threads");

/** A pattern of names as an expression. `*` matches anything, `?` one character. */
function expression(glob) {
  const text = glob.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(`^${text}$`, "s");
}

/** The file and the name of a pattern. A colon between them is no part of `::`. */
function split(pattern) {
  const at = pattern.search(/(?<!:):(?!:)/);
  const [file, name] = at < 0 ? [null, pattern] : [pattern.slice(0, at), pattern.slice(at + 1)];
  const pieces = name.split(/[*?.]/).sort((a, b) => b.length - a.length);
  return { file: file && expression(file), name: expression(name), piece: pieces[0] };
}

const patterns = (process.env.BACKSTORY_FUNCTIONS ?? "").split("\n").filter(Boolean).map(split);

/** The patterns that can match functions of a module. Those of packages are asked for by file. */
function wanted(file, content) {
  const name = basename(file);
  const names = [name, name.slice(0, name.length - extname(name).length)];
  const isPackage = file.includes("/node_modules/");
  return patterns.filter((one) => (one.file ? names.some((name) => one.file.test(name)) : !isPackage) && content.includes(one.piece));
}

/** A number for a function: a hash of its place and name. */
function numbered(file, where, name) {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${file}\0${where}\0${name}`)) hash = Math.imul(hash ^ byte, 0x01000193);
  const number = ((hash >>> 0) % INTERPRETED) + INTERPRETED;
  existsSync(`${MARK}function/${number}/${where}/${name}`);
  return number;
}

const enter = (number) => { existsSync(`${MARK}call/${number}`); };
const leave = (number) => { existsSync(`${MARK}return/${number}`); };

/** A call that can be suspended: at `await` and `yield`, other functions go on. */
class SuspendedCall {
  constructor(number) {
    this.number = number;
    this.active = false;
    this.on();
  }
  on(value) {
    if (!this.active) enter(this.number);
    this.active = true;
    return value;
  }
  off(value) {
    if (this.active) leave(this.number);
    this.active = false;
    return value;
  }
}

let parser;
/** The parser that Node itself has. */
function parse(content, options) {
  if (!parser) {
    const quiet = process.noDeprecation;
    // With --no-deprecation it is true, and cannot be set.
    if (!quiet) process.noDeprecation = true;
    const source = process.binding("natives")["internal/deps/acorn/acorn/dist/acorn"];
    if (!quiet) process.noDeprecation = quiet;
    const exports = {};
    require("vm").compileFunction(source, ["exports", "module"])(exports, { exports });
    parser = exports;
  }
  return parser.parse(content, { ecmaVersion: "latest", locations: true, allowHashBang: true, ...options });
}

const isFunction = (node) => /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type);
const keyOf = (node) => (node.computed ? null : node.key.name ?? (node.key.value === undefined ? null : String(node.key.value)));

/** The name that an assignment gives to a function: `Table.write` for `Table.prototype.write`. */
function targetName(target) {
  if (target.type === "Identifier") return target.name;
  if (target.type !== "MemberExpression" || target.computed) return null;
  const { object } = target;
  const isMethod = object.type === "MemberExpression" && !object.computed && object.property.name === "prototype" && object.object.type === "Identifier";
  return isMethod ? `${object.object.name}.${target.property.name}` : target.property.name;
}

/** The names that a node gives to its children. */
function namesIn(node, of) {
  switch (node.type) {
    case "VariableDeclarator":
      return new Map([[node.init, targetName(node.id)]]);
    case "AssignmentExpression":
      return new Map([[node.right, targetName(node.left)]]);
    case "Property":
      return new Map([[node.value, keyOf(node)]]);
    case "MethodDefinition":
    case "PropertyDefinition":
      return new Map([[node.value, of && keyOf(node) && `${of}.${keyOf(node)}`]]);
    case "ExportDefaultDeclaration":
      return new Map([[node.declaration, "default"]]);
    default:
      return new Map();
  }
}

/** The nodes inside of one, without those of functions in it. */
function* inside(node) {
  for (const [key, value] of Object.entries(node)) {
    if (key === "loc") continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type !== "string") continue;
      yield child;
      if (!isFunction(child)) yield* inside(child);
    }
  }
}

/** True if a function's block can lie in `try`. There, its functions would be as those of `let`, so
 * a variable, or another function, cannot have the same name. */
function canBeInner(body) {
  const functions = body.body.filter((one) => one.type === "FunctionDeclaration").map((one) => one.id.name);
  if (functions.length === 0) return true;
  const names = new Set(functions);
  if (names.size < functions.length) return false;
  for (const node of inside(body)) {
    if (node.type !== "VariableDeclaration" || node.kind !== "var") continue;
    for (const part of inside(node)) if (names.has(part.name)) return false;
  }
  return true;
}

/** True if a block of the function waits where it ends, so that no statement can follow. */
function waitsAtEnd(body) {
  for (const node of inside(body)) if (node.kind === "await using") return true;
  return false;
}

const isLoopThatWaits = (node) => node.type === "ForOfStatement" && node.await;

/** The statement that labels name. */
function labelled(node) {
  return node.type === "LabeledStatement" ? labelled(node.body) : node;
}

/** Statements for the functions of a tree whose names match. */
class Inserter {
  constructor(content, file, matching) {
    Object.assign(this, { content, file, matching, pieces: [] });
  }

  insert(at, text) {
    this.pieces.push({ at, text });
  }

  /** Goes through a node. `name`: that of a function or class; `of`: the class around it; `call`:
   * the function around it can be suspended; `isLabelled`: a label stands before it. */
  walk(node, name, of, call, isLabelled) {
    const own = node.id?.name ?? name;
    const hook = isFunction(node) ? this.begin(node, own) : null;
    const inner = isFunction(node) ? hook?.call : call;
    const around = /^Class(Declaration|Expression)$/.test(node.type) ? own : node.type === "ClassBody" ? of : null;
    const suspends = inner && (node.type === "AwaitExpression" || node.type === "YieldExpression");
    if (suspends) this.suspend(node);
    const after = inner ? this.around(node, isLabelled) : null;
    const names = namesIn(node, of);
    for (const [key, value] of Object.entries(node)) {
      if (key === "loc") continue;
      for (const child of Array.isArray(value) ? value : [value]) {
        if (typeof child?.type !== "string") continue;
        const end = inner && this.part(node, key, child);
        this.walk(child, names.get(child) ?? null, around, inner, node.type === "LabeledStatement");
        if (end) this.insert(end.at, end.text);
      }
    }
    if (suspends) this.insert(node.end, node.argument ? "))))" : "))");
    if (after) this.insert(node.end, after);
    if (hook) this.insert(hook.end, hook.text);
  }

  suspend(node) {
    this.insert(node.start, "__backstory_call.on((");
    if (node.argument) this.insert(node.argument.start, "__backstory_call.off((");
  }

  /** Inserts what begins before a statement, with its labels. Returns the text behind it. A loop that
   * waits leaves the call suspended, however it ends. */
  around(node, isLabelled) {
    if (isLabelled || !isLoopThatWaits(labelled(node))) return null;
    this.insert(node.start, "try{");
    return "}finally{__backstory_call.on()}";
  }

  /** Inserts what begins before a part of a statement. Returns the text behind it, and where. */
  part(node, key, child) {
    const isBlock = child.type === "BlockStatement";
    if ((key === "finalizer" && node.type === "TryStatement") || (key === "body" && node.type === "CatchClause")) {
      // An exception, or the end of a generator, came in the place of the value.
      this.insert(child.start + 1, "__backstory_call.on();");
    } else if (isLoopThatWaits(node) && key === "right") {
      this.insert(child.start, "__backstory_call.off((");
      return { at: child.end, text: "))" };
    } else if (isLoopThatWaits(node) && key === "body") {
      this.insert(child.start + (isBlock ? 1 : 0), `${isBlock ? "" : "{"}__backstory_call.on();try{`);
      return { at: child.end - (isBlock ? 1 : 0), text: `}finally{__backstory_call.off()}${isBlock ? "" : "}"}` };
    }
    return null;
  }

  /** Inserts the statement at the begin of a function. Returns that for its end. */
  begin(node, name) {
    if (!name || /[\n\0]/.test(name) || !this.matching.some((one) => one.name.test(name))) return null;
    const { body } = node;
    const isBlock = body.type === "BlockStatement";
    if (isBlock && !canBeInner(body) || node.async && waitsAtEnd(body)) return null;
    const head = node.params.length > 0 ? node.params[node.params.length - 1].end : node.start;
    const gap = isBlock ? "" : this.content.slice(head, body.start).match(/=>[\s(]*$/)?.[0];
    if (gap === undefined) return null; // a comment between the arrow and the expression
    const where = `${basename(this.file)}:${node.loc.start.line}`;
    const number = numbered(this.file, where, name);
    const call = node.async || node.generator;
    const begin = call ? `const __backstory_call=new ${HOOK}.SuspendedCall(${number});try{` : `${HOOK}.enter(${number});try{`;
    const end = call ? "}finally{__backstory_call.off()}" : `}finally{${HOOK}.leave(${number})}`;
    if (!isBlock) {
      this.insert(body.start - gap.length + 2, `{${begin}return(`);
      return { call, end: node.end, text: `)${end}}` };
    }
    const directives = body.body.filter((one) => one.directive !== undefined);
    const start = directives.length > 0 ? directives[directives.length - 1].end : body.start + 1;
    this.insert(start, `;${begin}`);
    return { call, end: body.end - 1, text: end };
  }

  result() {
    // The order of pieces at one place is that of their insertion.
    const pieces = this.pieces.map((piece, index) => ({ ...piece, index })).sort((a, b) => a.at - b.at || a.index - b.index);
    let text = "", at = 0;
    for (const piece of pieces) {
      text += this.content.slice(at, piece.at) + piece.text;
      at = piece.at;
    }
    return text + this.content.slice(at);
  }
}

/** The text of a module with statements in the functions that match. */
function hooked(content, file, options) {
  try {
    const matching = wanted(file, content);
    if (matching.length === 0) return content;
    const inserter = new Inserter(content, file, matching);
    inserter.walk(parse(content, options), null, null, null);
    if (inserter.pieces.length === 0) return content;
    const result = inserter.result();
    parse(result, options);
    return result;
  } catch {
    return content;
  }
}

/** The source of an ES module that was loaded, with statements. */
function ofModule(url, loaded) {
  if (loaded?.format !== "module" || loaded.source == null || !url.startsWith("file:")) return loaded;
  const source = typeof loaded.source === "string" ? loaded.source : Buffer.from(loaded.source).toString();
  return { ...loaded, source: hooked(source, fileURLToPath(url), { sourceType: "module" }) };
}

/** True if the program begins with an ES module. */
function beginsWithModule() {
  const file = process.argv[1];
  if (!file || extname(file) === ".cjs") return false;
  if (extname(file) === ".mjs") return true;
  for (let at = dirname(file); ; at = dirname(at)) {
    try {
      return JSON.parse(readFileSync(join(at, "package.json"), "utf8")).type === "module";
    } catch {
      if (at === dirname(at)) return false;
    }
  }
}

function install() {
  Object.defineProperty(globalThis, HOOK, { value: { enter, leave, SuspendedCall } });
  const compile = Module.prototype._compile;
  Module.prototype._compile = function (content, file, ...rest) {
    const options = { sourceType: "script", allowReturnOutsideFunction: true };
    return compile.call(this, typeof content === "string" ? hooked(content, file, options) : content, file, ...rest);
  };
  if (Module.registerHooks) Module.registerHooks({ load: (url, context, next) => ofModule(url, next(url, context)) });
  else if (Module.register && isMainThread && beginsWithModule()) Module.register(pathToFileURL(__filename));
}

/** The hook of Node 18 to 22, which calls it in a thread of its own. */
exports.load = async (url, context, next) => ofModule(url, await next(url, context));

if (patterns.length > 0 && !Object.prototype.hasOwnProperty.call(globalThis, HOOK)) install();
