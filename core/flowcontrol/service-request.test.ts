import { describe, expect, it } from "vitest";
import { serviceRequestAttributes } from "./service-request.ts";

const NOBODY = { user: "system:anonymous", groups: ["system:unauthenticated"] };
const request = (method = "GET", target = "/") => ({ method, target, header: (name: string) => `value of ${name}` });

describe("serviceRequestAttributes", () => {
  it("reads methods as verbs, services as resources, paths without their query", () => {
    const target = { namespace: "ns", service: "s", tag: "canary" };
    expect(serviceRequestAttributes(request("POST", "/a/b?c=d"), target, NOBODY)).toMatchObject({
      user: "system:anonymous",
      verb: "create",
      path: "/a/b",
      resource: {
        apiGroup: "serving.knative.dev",
        resource: "services",
        subresource: "canary",
        namespace: "ns",
        name: "s",
      },
    });
    const verbs = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"].map(
      method => serviceRequestAttributes(request(method), target, NOBODY).verb,
    );
    expect(verbs).toEqual(["get", "get", "update", "patch", "delete", "options", "propfind"]);
  });

  it("has no headers in which a client says who it is", () => {
    const { header } = serviceRequestAttributes(request(), { namespace: "ns", service: "s", tag: "" }, NOBODY);
    expect(header("x-plan")).toBe("value of x-plan");
    for (const name of ["x-remote-user", "x-remote-group", "x-remote-extra-scopes"])
      expect(header(name)).toBeUndefined();
  });
});
