// The page is built into `dist`, which the crate `serve` embeds. `npm run dev` serves the sources
// and forwards requests of the API to a running `backstory serve`:
//
//     BACKSTORY_URL='http://127.0.0.1:PORT/?token=…' npm run dev
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { CommonServerOptions } from "vite";
import { defineConfig } from "vitest/config";

const server = process.env["BACKSTORY_URL"] ? new URL(process.env["BACKSTORY_URL"]) : null;

/** The token goes with each request, since the cookie comes with the server's own page only. */
function passedOn({ origin, searchParams }: URL): CommonServerOptions["proxy"] {
  const headers = { origin, authorization: `Bearer ${searchParams.get("token") ?? ""}` };
  return { "/api": { target: origin, changeOrigin: true, headers } };
}

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: "es2022",
    // The Content-Security-Policy forbids inline scripts, such as the polyfill of `modulepreload`.
    // Every browser that this page supports implements `modulepreload`.
    modulePreload: { polyfill: false },
    // Every asset is a separate file, so that the policy needs no `data:` for fonts or scripts.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    reportCompressedSize: false,
  },
  server: server ? { proxy: passedOn(server) } : {},
  resolve: process.env["VITEST"] ? { conditions: ["browser"] } : {},
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.ts"],
    // A busy machine may run nothing of a test for seconds.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
