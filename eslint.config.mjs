import tseslint from "typescript-eslint";

/** Imports point one way: core <- api <- {capabilities, dataplane, cli}; see docs/adr/0001-one-way-imports.md. */
const forbid = (files, patterns) => ({
  files,
  ignores: ["**/*.test.ts"],
  rules: {
    "no-restricted-imports": ["error", { patterns: patterns.map(([group, message]) => ({ group, message })) }],
  },
});
const NODE = ["node:*", "@kubernetes/*", "kubernetes-fluent-client", "pepr", "pino", "prom-client", "undici", "ws"];

export default tseslint.config(
  { ignores: ["dist/**", "node_modules/**", "coverage/**", "hack/**/testdata/**"] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/require-await": "off",
      eqeqeq: ["error", "always"],
      "no-empty": "error",
      "no-console": "error",
    },
  },
  { files: ["cli/**", "hack/**", "test/**"], rules: { "no-console": "off" } },
  { files: ["**/*.mjs", "**/*.cjs", "**/*.js"], ...tseslint.configs.disableTypeChecked },
  forbid(
    ["core/**/*.ts"],
    [
      [NODE, "core is pure: no I/O, no Kubernetes, no clock"],
      [
        ["**/api/**", "**/capabilities/**", "**/dataplane/**", "**/cli/**", "**/hack/**", "**/test/**"],
        "core imports nothing of ours",
      ],
    ],
  ),
  {
    files: ["core/**/*.ts"],
    ignores: ["**/*.test.ts", "core/testing/**"],
    rules: {
      "no-restricted-globals": [
        "error",
        ...[
          "setTimeout",
          "setInterval",
          "setImmediate",
          "queueMicrotask",
          "process",
          "performance",
          "console",
          "fetch",
          "Buffer",
        ].map(name => ({ name, message: "core is pure: time, randomness and I/O are arguments" })),
      ],
      "no-restricted-properties": [
        "error",
        { object: "Date", property: "now", message: "time is an argument" },
        { object: "Math", property: "random", message: "randomness is an argument" },
      ],
    },
  },
  forbid(
    ["api/**/*.ts"],
    [
      [NODE, "api imports only zod"],
      [
        ["**/core/**", "**/capabilities/**", "**/dataplane/**", "**/cli/**", "**/hack/**", "**/test/**"],
        "api imports only zod",
      ],
    ],
  ),
  forbid(
    ["capabilities/**/*.ts"],
    [[["**/dataplane/**", "**/cli/**", "**/hack/**", "**/test/**"], "capabilities use core and api only"]],
  ),
  forbid(
    ["dataplane/**/*.ts"],
    [
      [
        ["**/capabilities/**", "**/cli/**", "**/hack/**", "**/test/**", "pepr"],
        "the data plane uses core and api only",
      ],
    ],
  ),
  forbid(
    ["cli/**/*.ts"],
    [[["**/capabilities/**", "**/dataplane/**", "**/hack/**", "**/test/**", "pepr"], "the CLI uses core and api only"]],
  ),
);
