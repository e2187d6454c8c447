// The page is built into `dist`, which the crate `serve` embeds. `npm run dev` serves the sources
// and forwards requests of the API to a running `backstory serve`:
//
//     BACKSTORY_URL='http://127.0.0.1:PORT/?token=…' npm run dev
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

const server = process.env["BACKSTORY_URL"];

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
  server: server ? { proxy: { "/api": { target: new URL(server).origin, changeOrigin: true } } } : {},
  resolve: process.env["VITEST"] ? { conditions: ["browser"] } : {},
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.ts"],
  },
});
