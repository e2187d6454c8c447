import globals from "globals";
import svelte from "eslint-plugin-svelte";
import typescript from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

export default typescript.config(
  { ignores: ["dist", "node_modules", "src/api/schema.d.ts"] },
  ...typescript.configs.strict,
  ...typescript.configs.stylistic,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: typescript.parser, svelteConfig } },
  },
  {
    rules: {
      // Recorded strings are untrusted: they are shown as text nodes only.
      "svelte/no-at-html-tags": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Strings of a recording are shown as text nodes only." },
        { property: "outerHTML", message: "Strings of a recording are shown as text nodes only." },
        { property: "insertAdjacentHTML", message: "Strings of a recording are shown as text nodes only." },
      ],
      "no-eval": "error",
      "max-lines": ["error", { max: 320 }],
      "svelte/no-navigation-without-resolve": "off",
      // Maps and sets in the state are replaced as a whole, never changed in place.
      "svelte/prefer-svelte-reactivity": "off",
      // An expression is the only way to write a newline in `pre`.
      "svelte/no-useless-mustaches": "off",
      "svelte/require-each-key": "error",
    },
  },
);
