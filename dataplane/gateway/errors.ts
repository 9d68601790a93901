import type { RevisionTrouble } from "./revisions/revision-settings.ts";

/** No route has the host the client asked for. */
export class RouteNotFoundError extends Error {
  readonly code = "ROUTE_NOT_FOUND";
  constructor(host: string) {
    super(`no service is routed for host ${JSON.stringify(host)}`);
    this.name = "RouteNotFoundError";
  }
}

/** The request is one that a gateway does not forward. */
export class BadRequestError extends Error {
  readonly code = "BAD_REQUEST";
  constructor(message: string) {
    super(message);
    this.name = "BadRequestError";
  }
}

/** The client shows a certificate that does not hold, and nothing else that says who it is. */
export class ClientCertificateError extends Error {
  readonly code = "CLIENT_CERTIFICATE_INVALID";
  /** @param problem as OpenSSL calls it, such as `CERT_HAS_EXPIRED` */
  constructor(problem: string) {
    super(`the client certificate does not hold: ${problem}`);
    this.name = "ClientCertificateError";
  }
}

/** No room to wait for a place at the revision. */
export class RevisionQueueFullError extends Error {
  readonly code = "QUEUE_FULL";
  readonly retryAfterS: number;
  constructor(revision: string, waiting: number, limit: number, retryAfterS: number) {
    super(`queue full: ${waiting} requests wait for a place at revision ${revision}, limit ${limit}`);
    this.name = "RevisionQueueFullError";
    this.retryAfterS = retryAfterS;
  }
}

/** All places stayed busy. */
export class PlaceTimeoutError extends Error {
  readonly code = "PLACE_TIMEOUT";
  readonly retryAfterS: number;
  constructor(revision: string, places: number, waitedMs: number, retryAfterS: number) {
    super(`all ${places} places at revision ${revision} stayed busy for ${Math.round(waitedMs)} ms`);
    this.name = "PlaceTimeoutError";
    this.retryAfterS = retryAfterS;
  }
}

/** No pod became ready. */
export class NoPodError extends Error {
  readonly code = "NO_POD";
  readonly retryAfterS: number;
  constructor(revision: string, waitedMs: number, trouble: RevisionTrouble | undefined, retryAfterS: number) {
    const why = trouble === undefined ? "" : `: ${trouble.reason}: ${trouble.message}`;
    super(`no pod of revision ${revision} became ready within ${Math.round(waitedMs)} ms${why}`);
    this.name = "NoPodError";
    this.retryAfterS = retryAfterS;
  }
}

/** The revision has failed and has no pod that serves. */
export class RevisionFailedError extends Error {
  readonly code = "REVISION_FAILED";
  readonly retryAfterS: number;
  constructor(revision: string, trouble: RevisionTrouble, retryAfterS: number) {
    super(`revision ${revision} cannot serve: ${trouble.reason}: ${trouble.message}`);
    this.name = "RevisionFailedError";
    this.retryAfterS = retryAfterS;
  }
}

/** No seat at this gateway for a request of the priority level. */
export class SeatRejectedError extends Error {
  readonly code = "TOO_MANY_REQUESTS";
  readonly retryAfterS: number;
  constructor(level: string, reason: string, retryAfterS: number) {
    super(`too many requests at priority level ${level}: ${reason}`);
    this.name = "SeatRejectedError";
    this.retryAfterS = retryAfterS;
  }
}

/** The revision was deleted while the request waited. */
export class RevisionGoneError extends Error {
  readonly code = "REVISION_GONE";
  readonly retryAfterS = 1;
  constructor(revision: string) {
    super(`revision ${revision} was deleted`);
    this.name = "RevisionGoneError";
  }
}

/** The revision is at home at another gateway now: the request, of which nothing was sent, goes there. */
export class HomeMovedError extends Error {
  readonly code = "HOME_MOVED";
  constructor(revision: string, gateway: string) {
    super(`revision ${revision} is at home at gateway ${gateway} now`);
    this.name = "HomeMovedError";
  }
}
