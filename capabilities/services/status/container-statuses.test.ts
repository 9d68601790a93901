import { describe, expect, it } from "vitest";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { Pod } from "../kinds.ts";
import { imageDigests } from "./container-statuses.ts";

const sha = (c: string): string => `@sha256:${c.repeat(64)}`;
const revision = (image: string, status: Revision["status"] = {}): Revision => ({
  metadata: { name: "r" },
  spec: { containers: [{ name: "user-container", image }] },
  status,
});
const running = (imageID: string): Pod => ({ status: { containerStatuses: [{ name: "user-container", imageID }] } });

describe("imageDigests", () => {
  it("takes the digest that the image's name carries", () => {
    expect(imageDigests(revision(`r.example/app${sha("a")}`), []).containerStatuses).toEqual([
      { name: "user-container", imageDigest: `r.example/app${sha("a")}` },
    ]);
  });

  it("takes what a pod runs, without the runtime's scheme", () => {
    const pods = [running("sha256:abc"), running(`docker-pullable://r.example/app${sha("b")}`)];
    expect(imageDigests(revision("r.example/app:1"), pods).containerStatuses).toEqual([
      { name: "user-container", imageDigest: `r.example/app${sha("b")}` },
    ]);
  });

  it("keeps what was seen first", () => {
    const status = { containerStatuses: [{ name: "user-container", imageDigest: `r.example/app${sha("b")}` }] };
    const pods = [running(`r.example/app${sha("c")}`)];
    expect(imageDigests(revision("r.example/app:1", status), pods).containerStatuses).toEqual(status.containerStatuses);
  });

  it("says nothing of an image that was loaded by hand", () => {
    expect(imageDigests(revision("kind.local/app:1"), [running("sha256:abc")])).toEqual({
      containerStatuses: [{ name: "user-container" }],
      initContainerStatuses: [],
    });
  });
});
