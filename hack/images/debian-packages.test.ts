import { describe, expect, it } from "vitest";
import { PackagesUnavailableError, parsePrintUris } from "./debian-packages.ts";

describe("parsePrintUris", () => {
  it("reads name, version, file and digest, whatever characters the version has", () => {
    const digest = "ab".repeat(32);
    const lines = [
      `'http://mirror/libs/libstdc%2b%2b6_12.2.0-14%2bdeb12u1_amd64.deb' libstdc++6_12.2.0-14+deb12u1_amd64.deb 612604 SHA256:${digest}`,
      `'http://mirror/z/zlib1g_1.2_amd64.deb' zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 86700 SHA256:${digest}`,
      "",
    ];
    expect(parsePrintUris(lines.join("\n"))).toEqual([
      {
        name: "libstdc++6",
        version: "12.2.0-14+deb12u1",
        file: "libstdc++6_12.2.0-14+deb12u1_amd64.deb",
        sha256: digest,
      },
      { name: "zlib1g", version: "1:1.2.13.dfsg-1", file: "zlib1g_1%3a1.2.13.dfsg-1_amd64.deb", sha256: digest },
    ]);
  });

  it("refuses a line without a SHA-256", () => {
    expect(() => parsePrintUris("'http://mirror/a.deb' a_1_all.deb 1 MD5Sum:00")).toThrow(PackagesUnavailableError);
  });
});
