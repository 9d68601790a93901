import { expect, test } from "vitest";
import { isImageReference } from "./image-reference.ts";

const digest = `sha256:${"a".repeat(64)}`;

test.each([
  "busybox",
  "gcr.io/project/app:v1.2_3",
  "localhost:5000/app",
  `docker.io/library/app@${digest}`,
  `app:v1@${digest}`,
  "fairway.dev/sample:0.1.0",
])("%s is a reference", reference => {
  expect(isImageReference(reference)).toBe(true);
});

test.each(["", "a", "UPPER/case", "app:", "app:a b", "foo bar", "app@sha256:abc", `a@b@${digest}`])(
  "%j is none",
  reference => {
    expect(isImageReference(reference)).toBe(false);
  },
);
