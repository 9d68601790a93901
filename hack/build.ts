import { build } from "esbuild";

/**
 * Bundles each role of the image into one file under dist/: no node_modules are needed at run time.
 * The operator is CommonJS because Pepr is; the others are ES modules.
 */
const common = {
  bundle: true,
  platform: "node",
  target: "node24",
  sourcemap: false,
  legalComments: "none",
  logLevel: "warning",
} as const;

// Libraries that are CommonJS call require() for Node's own modules, which an ES module bundle has to provide.
const requireShim =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

await Promise.all([
  build({
    ...common,
    format: "cjs",
    entryPoints: { operator: "pepr.ts" },
    outdir: "dist",
    outExtension: { ".js": ".cjs" },
  }),
  build({
    ...common,
    format: "esm",
    banner: { js: requireShim },
    entryPoints: {
      gateway: "dataplane/gateway/main.ts",
      "queue-proxy": "dataplane/queue-proxy/main.ts",
      cli: "cli/main.ts",
    },
    outdir: "dist",
    outExtension: { ".js": ".mjs" },
  }),
]);
