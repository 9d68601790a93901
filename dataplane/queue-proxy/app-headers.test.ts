import { describe, expect, it } from "vitest";
import type { Exchange } from "../shared/http/exchange.ts";
import { appHeaders } from "./app-headers.ts";

function exchange(fields: Record<string, string>, remoteAddress = "10.0.0.9"): Exchange {
  const lower = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    rawHeaders: Object.entries(fields).flat(),
    remoteAddress,
    header: (name: string) => lower[name],
  } as unknown as Exchange;
}

const pairs = (headers: readonly string[]): Record<string, string> =>
  Object.fromEntries(headers.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), headers[i + 1] ?? ""]] : [])));

describe("appHeaders", () => {
  it("takes the system's own fields away and leaves the user's alone", () => {
    const headers = appHeaders(
      exchange({
        Host: "a.example.com",
        "K-Proxy-Request": "gateway",
        "K-Network-Probe": "x",
        "Knative-Serving-Revision": "r",
        Expect: "100-continue",
        Connection: "close",
        "X-User": "1",
        traceparent: "00-1-2-01",
        "X-Forwarded-For": "1.2.3.4",
        Forwarded: "for=1.2.3.4",
      }),
      "http1",
    );
    expect(headers).toEqual([
      ...["X-User", "1", "traceparent", "00-1-2-01"],
      ...["X-Forwarded-For", "1.2.3.4", "Forwarded", "for=1.2.3.4"],
    ]);
  });

  it.each([
    {
      title: "a gateway's X-Forwarded fields become Forwarded",
      fields: {
        "K-Proxy-Request": "gateway",
        "X-Forwarded-For": "1.2.3.4, 2001:db8::1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "a.example.com:8080",
      },
      want: {
        "x-forwarded-for": "1.2.3.4, 2001:db8::1",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "a.example.com:8080",
        forwarded: 'for=1.2.3.4;host="a.example.com:8080";proto=https, for="[2001:db8::1]"',
      },
    },
    {
      title: "without a gateway this hop adds its peer",
      fields: { "X-Forwarded-For": "1.2.3.4" },
      want: {
        "x-forwarded-for": "1.2.3.4, 10.0.0.9",
        "x-forwarded-proto": "http",
        forwarded: "for=1.2.3.4;proto=http, for=10.0.0.9",
      },
    },
    {
      title: "without a gateway Forwarded grows too",
      fields: { Forwarded: "for=1.2.3.4;proto=https", "X-Forwarded-Proto": "https" },
      want: {
        "x-forwarded-for": "10.0.0.9",
        "x-forwarded-proto": "https",
        forwarded: "for=1.2.3.4;proto=https, for=10.0.0.9",
      },
    },
  ])("$title", ({ fields, want }) => {
    expect(pairs(appHeaders(exchange(fields), "http1"))).toEqual(want);
  });

  it("keeps `te: trailers` for an HTTP/2 app alone", () => {
    const request = exchange({ TE: "trailers", "K-Proxy-Request": "gateway" });
    expect(appHeaders(request, "h2c")).toEqual(["te", "trailers"]);
    expect(appHeaders(request, "http1")).toEqual([]);
  });
});
