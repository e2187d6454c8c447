// Has Mermaid's own parser read a diagram: `mermaid.mjs DIRECTORY-OF-PACKAGES FILE`. Prints what it is.
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
// It cleans labels with a library that wants a browser's document.
const { JSDOM } = require("jsdom");
globalThis.window = new JSDOM("").window;
globalThis.document = globalThis.window.document;
const place = `${process.argv[2]}/node_modules/mermaid/dist/mermaid.core.mjs`;
const mermaid = (await import(pathToFileURL(place))).default;
// A page may set it; the exporter warns where it has to.
mermaid.initialize({ maxEdges: 1e6 });
console.log((await mermaid.parse(fs.readFileSync(process.argv[3], "utf8"))).diagramType);
