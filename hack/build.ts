import { join } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";

/**
 * Bundles each role of the image into one file under dist/: no node_modules are needed at run time.
 * `node hack/build.ts [role...]`; without arguments every role.
 */
const common = {
  bundle: true,
  platform: "node",
  target: "node24",
  sourcemap: false,
  legalComments: "none",
  logLevel: "warning",
} as const;

const commonjs = { ...common, format: "cjs", outdir: "dist", outExtension: { ".js": ".cjs" } } as const;

const esModule = {
  ...common,
  format: "esm",
  // Libraries that are CommonJS call require() for Node's own modules, which an ES module bundle has to provide.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
  outdir: "dist",
  outExtension: { ".js": ".mjs" },
} as const;

/** Packages of which the queue-proxy uses a part: what stands in their place is in hack/bundle. */
const PARTS: Readonly<Record<string, string>> = {
  assert: "assert.cjs",
  "prom-client": "prom-client-metrics.mjs",
  "thread-stream": "thread-stream.cjs",
  worker_threads: "worker-threads.cjs",
};

/** What is not in the bundle need not be loaded. */
const usedParts: Plugin = {
  name: "used-parts",
  setup(bundle) {
    bundle.onResolve({ filter: new RegExp(`^(${Object.keys(PARTS).join("|")})$`) }, ({ path }) => {
      const part = PARTS[path];
      return part === undefined ? undefined : { path: join(import.meta.dirname, "bundle", part) };
    });
  },
};

const roles: Readonly<Record<string, BuildOptions>> = {
  // CommonJS because Pepr is.
  operator: { ...commonjs, entryPoints: { operator: "pepr.ts" } },
  gateway: { ...esModule, entryPoints: { gateway: "dataplane/gateway/main.ts" } },
  // It starts in every pod, and a small CommonJS file is running sooner than an ES module.
  "queue-proxy": {
    ...commonjs,
    minify: true,
    plugins: [usedParts],
    entryPoints: { "queue-proxy": "dataplane/queue-proxy/main.ts" },
  },
  cli: { ...esModule, entryPoints: { cli: "cli/main.ts" } },
};

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(roles);
await Promise.all(
  wanted.map(async role => {
    const options = roles[role];
    if (options === undefined) throw new Error(`role "${role}": expected one of ${Object.keys(roles).join(", ")}`);
    await build(options);
  }),
);
