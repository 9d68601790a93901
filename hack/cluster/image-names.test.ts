import { expect, it } from "vitest";
import { importedImageNames } from "./image-names.ts";

it("takes the saved images out of ctr's progress", () => {
  const output = [
    "fairway.dev/fairway:1.0 saved",
    "application/vnd.oci.image.manifest.v1+json sha256:4d4e95",
    "fairway.dev/sample:1.0   \tsaved\t",
    "Importing\telapsed: 0.1 s\ttotal:   0.0 B\t(0.0 B/s)",
    "",
  ].join("\n");
  expect(importedImageNames(output)).toEqual(["fairway.dev/fairway:1.0", "fairway.dev/sample:1.0"]);
});
