import { expect, it } from "vitest";
import { requireSupportedHost, UnsupportedHostError } from "./prerequisites.ts";

it("accepts root on Linux", () => {
  expect(() => requireSupportedHost("linux", 0)).not.toThrow();
});

it.each([
  ["darwin", 501, "needs Linux, and this is darwin"],
  ["win32", undefined, "needs Linux, and this is win32"],
  ["linux", 1000, "needs root (namespaces, mounts), and this is user 1000"],
] as const)("on %s as user %s says what is missing and what to use instead", (platform, userId, message) => {
  const attempt = (): void => requireSupportedHost(platform, userId);
  expect(attempt).toThrow(UnsupportedHostError);
  expect(attempt).toThrow(message);
  expect(attempt).toThrow("npm run cluster -- up --use-current");
});
