import { expect, test } from "vitest";
import { isGoogleServiceAccount, podServiceAccountName } from "./service-account.ts";

test("Google's account of an exported Cloud Run service is not asked of Kubernetes", () => {
  expect(podServiceAccountName({ serviceAccountName: "1-compute@developer.gserviceaccount.com" })).toBeUndefined();
  expect(podServiceAccountName({ serviceAccountName: "mine" })).toBe("mine");
  expect(podServiceAccountName({ serviceAccountName: "" })).toBeUndefined();
  expect(isGoogleServiceAccount("foo@bar.baz")).toBe(false);
});
