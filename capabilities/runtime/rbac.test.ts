import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import * as kinds from "./kinds.ts";
import type { ResourceKind } from "./resource.ts";
import { mutatingWebhooks, validatingWebhooks } from "./webhook-ca.ts";
import { webhookSecrets } from "./webhook-certificates.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}
interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly Rule[];
}

const file = join(import.meta.dirname, "../../manifests/base/operator-rbac.yaml");
const roles = parseAllDocuments(await readFile(file, "utf8"))
  .map(document => document.toJS() as Role)
  .filter(({ kind }) => kind === "ClusterRole" || kind === "Role");
const rules = roles.flatMap(({ rules = [] }) => rules);

const allowed = (group: string, resource: string, verb: string): boolean =>
  rules.some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups.includes(group) && resources.includes(resource) && verbs.includes(verb),
  );

/** Kinds that only admission names: nothing of theirs is kept in memory yet. */
const watched: readonly ResourceKind[] = [
  ...(Object.values(kinds) as unknown as readonly ResourceKind[]),
  mutatingWebhooks as unknown as ResourceKind,
  validatingWebhooks as unknown as ResourceKind,
  webhookSecrets as unknown as ResourceKind,
];

describe("what the operator may do", () => {
  it("has no wildcard", () => {
    for (const rule of rules) {
      expect([...rule.apiGroups, ...rule.resources, ...rule.verbs]).not.toContain("*");
    }
  });

  it("includes watching every kind that it keeps in memory", () => {
    const missing = watched.flatMap(({ group, plural }) =>
      ["get", "list", "watch"].filter(verb => !allowed(group, plural, verb)).map(verb => `${verb} ${plural}.${group}`),
    );
    expect(missing).toEqual([]);
  });

  it("reaches no Secret but its own, and only in its namespace", () => {
    for (const role of roles) {
      for (const { resources, resourceNames, verbs } of role.rules ?? []) {
        if (!resources.includes("secrets")) continue;
        expect(role.metadata.namespace).toBe("fairway-system");
        if (!verbs.every(verb => verb === "create")) expect(resourceNames).toEqual(["fairway-webhook-certs"]);
      }
    }
  });

  it("does not let it grant rights, run in pods, or act as others", () => {
    const verbs = rules.flatMap(rule => rule.verbs);
    for (const verb of ["escalate", "bind", "impersonate", "deletecollection"]) expect(verbs).not.toContain(verb);
    const resources = rules.flatMap(rule => rule.resources);
    for (const resource of ["pods/exec", "pods/attach", "nodes", "roles", "clusterroles", "serviceaccounts/token"]) {
      expect(resources).not.toContain(resource);
    }
  });
});
