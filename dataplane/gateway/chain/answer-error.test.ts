import { describe, expect, it } from "vitest";
import { ClientGoneError, UpstreamError, UpstreamTimeoutError } from "../../shared/http/relay.ts";
import {
  BadRequestError,
  ClientCertificateError,
  NoPodError,
  PlaceTimeoutError,
  RevisionFailedError,
  RevisionQueueFullError,
  RouteNotFoundError,
} from "../errors.ts";
import { errorAnswer } from "./answer-error.ts";

describe("errorAnswer", () => {
  const trouble = { reason: "ImagePullBackOff", message: "no such image" };
  it.each([
    [new RouteNotFoundError("x"), 404, undefined],
    [new BadRequestError("x"), 400, undefined],
    [new ClientCertificateError("CERT_HAS_EXPIRED"), 401, undefined],
    [new RevisionQueueFullError("ns/r", 50, 50, 7), 429, 7],
    [new PlaceTimeoutError("ns/r", 2, 1000, 3), 429, 3],
    [new NoPodError("ns/r", 1000, trouble, 1), 503, 1],
    [new RevisionFailedError("ns/r", trouble, 1), 503, 1],
    [new UpstreamError(false, new Error("ECONNREFUSED")), 503, 1],
    [new UpstreamError(true, new Error("ECONNRESET")), 502, undefined],
    [new UpstreamTimeoutError("whole", 1000), 504, undefined],
    [new ClientGoneError(), 499, undefined],
    [new TypeError("a bug"), 500, undefined],
  ])("%s -> %s, Retry-After %s", (error, status, retryAfterS) => {
    expect(errorAnswer(error)).toMatchObject({ status, ...(retryAfterS === undefined ? {} : { retryAfterS }) });
  });

  it("tells strangers nothing of the inside", () => {
    expect(errorAnswer(new TypeError("a bug at 10.0.0.1"))).toEqual({
      status: 500,
      code: "INTERNAL",
      message: "internal error",
    });
    expect(errorAnswer(new UpstreamError(true, new Error("10.0.0.1"))).message).not.toContain("10.0.0.1");
  });
});
