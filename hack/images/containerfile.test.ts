import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { APP_ENV, ENTRYPOINT, INIT_PATH, NODE_PATH, ROLE_FILES } from "./fairway-image.ts";
import { NONROOT } from "./image.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const text = readFileSync(join(ROOT, "Containerfile"), "utf8");
const [, final = ""] = text.split(/^FROM gcr\.io\/distroless/m);

describe("Containerfile", () => {
  it("makes what the local assembly makes", () => {
    const bundles = Object.values(ROLE_FILES).map(file => `/src/dist/${file}`);
    expect(final).toContain(`COPY --from=build ${bundles.join(" ")} /app/`);
    expect(final).toContain(`COPY --from=build /src/node_modules/node/bin/node ${NODE_PATH}`);
    expect(final).toContain(`ENV ${APP_ENV.join(" ")}\n`);
    expect(final).toContain(`USER ${NONROOT}\n`);
    expect(final).toContain(`COPY --from=build ${INIT_PATH} ${INIT_PATH}\n`);
    expect(final).toContain(`ENTRYPOINT ${JSON.stringify(ENTRYPOINT).replaceAll(",", ", ")}\n`);
    expect(final).toContain(`CMD ${JSON.stringify([`/app/${ROLE_FILES.cli}`])}\n`);
  });

  it("names the project's version", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
    expect(final).toContain(`ARG VERSION=${version}\n`);
  });

  it("pins every base by digest", () => {
    const bases = text.split("\n").filter(line => line.startsWith("FROM "));
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base).toMatch(/@sha256:[0-9a-f]{64}( AS \w+)?$/);
  });
});
