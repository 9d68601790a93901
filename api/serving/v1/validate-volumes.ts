import type { FeaturesConfig } from "../../config/features.ts";
import { dns1123LabelErrors } from "../../meta/dns.ts";
import {
  at,
  atIndex,
  generic,
  invalidValue,
  missing,
  missingOneOf,
  multipleOneOf,
  SELF,
} from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";
import { quote } from "../../meta/go-format.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import * as mask from "./field-mask.ts";
import { checkFields } from "./field-mask.ts";
import type { KeyToPath, Volume, VolumeMount, VolumeProjection } from "./pod-spec.ts";

/** Rules for the volumes of a revision and where its containers mount them. */

const RESERVED_PATHS: ReadonlySet<string> = new Set(["/", "/dev", "/dev/log"]);

export type Volumes = ReadonlyMap<string, Volume>;

export function validateVolumes(
  volumes: readonly Volume[],
  mounted: ReadonlySet<string>,
  features: FeaturesConfig,
): FieldErrors {
  return volumes.flatMap((volume, i) =>
    at(i, [
      ...(volumes.slice(0, i).some(other => other.name === volume.name)
        ? [generic(`duplicate volume name ${quote(volume.name)}`, ["name"])]
        : []),
      ...(mounted.has(volume.name) ? [] : [generic(`volume with name ${quote(volume.name)} not mounted`, ["name"])]),
      ...validateVolume(volume, features),
    ]),
  );
}

const VOLUME_SOURCES = [
  "secret",
  "configMap",
  "projected",
  "emptyDir",
  "persistentVolumeClaim",
  "hostPath",
  "csi",
  "ephemeral",
  "image",
] as const;

function validateVolume(volume: Volume, features: FeaturesConfig): FieldErrors {
  const specified = VOLUME_SOURCES.filter(source => volume[source] !== undefined);
  return [
    ...volumeFeatures(volume, features),
    ...checkFields(volume, mask.volumeMask(features)),
    ...(volume.name === ""
      ? [missing("name")]
      : dns1123LabelErrors(volume.name).length > 0
        ? [invalidValue(volume.name, "name")]
        : []),
    ...at("secret", validateItems(volume.secret?.items)),
    ...at("configMap", validateItems(volume.configMap?.items)),
    ...at(
      "projected",
      (volume.projected?.sources ?? []).flatMap((source, i) => atIndex("sources", i, validateProjection(source))),
    ),
    ...at("emptyDir", validateEmptyDir(volume.emptyDir)),
    ...at("image", validateImageVolume(volume.image)),
    ...(specified.length === 0 ? [missingOneOf(...mask.volumeTypes(features))] : []),
    ...(specified.length > 1 ? [multipleOneOf(...specified)] : []),
  ];
}

/** A flag that is `allowed` lets the field through the mask, yet these ask for `enabled`. */
function volumeFeatures(volume: Volume, features: FeaturesConfig): FieldErrors {
  const off = (type: string, found: string) => generic(`${type} support is disabled, but found ${found}`, [SELF]);
  const sources = [
    ["image", "Image volume", "kubernetes.podspec-volumes-image"],
    ["emptyDir", "EmptyDir volume", "kubernetes.podspec-volumes-emptydir"],
    ["hostPath", "HostPath volume", "kubernetes.podspec-volumes-hostpath"],
    ["csi", "CSI volume", "kubernetes.podspec-volumes-csi"],
    ["ephemeral", "Ephemeral volume", "kubernetes.podspec-volumes-ephemeral"],
  ] as const;
  const claim = volume.persistentVolumeClaim as
    | { readonly claimName?: string; readonly readOnly?: boolean }
    | undefined;
  const found = `persistent volume claim ${claim?.claimName ?? ""}`;
  return [
    ...sources
      .filter(([source, , flag]) => volume[source] !== undefined && features[flag] !== "enabled")
      .map(([, type]) => off(type, `${type} ${volume.name}`)),
    ...(claim !== undefined && features["kubernetes.podspec-persistent-volume-claim"] !== "enabled"
      ? [off("Persistent volume claim", found)]
      : []),
    ...(claim !== undefined &&
    claim.readOnly !== true &&
    features["kubernetes.podspec-persistent-volume-write"] !== "enabled"
      ? [off("Persistent volume write", `${found} that is not read-only`)]
      : []),
  ];
}

const validateItems = (items: readonly KeyToPath[] | undefined): FieldErrors =>
  (items ?? []).flatMap((item, i) =>
    atIndex("items", i, [
      ...checkFields(item, mask.KEY_TO_PATH_MASK),
      ...(item.key === "" ? [missing("key")] : []),
      ...(item.path === "" ? [missing("path")] : []),
    ]),
  );

function validateProjection(projection: VolumeProjection): FieldErrors {
  const { secret, configMap, serviceAccountToken, downwardAPI } = projection;
  const specified = (["secret", "configMap", "serviceAccountToken", "downwardAPI"] as const).filter(
    source => projection[source] !== undefined,
  );
  const keyed = (source: typeof secret): FieldErrors =>
    source === undefined
      ? []
      : [
          ...checkFields(source, mask.KEY_PROJECTION_MASK),
          ...(source.name ? [] : [missing("name")]),
          ...validateItems(source.items),
        ];
  return [
    ...checkFields(projection, mask.PROJECTION_MASK),
    ...at("secret", keyed(secret)),
    ...at("configMap", keyed(configMap)),
    ...at(
      "serviceAccountToken",
      serviceAccountToken === undefined
        ? []
        : [
            ...checkFields(serviceAccountToken, mask.TOKEN_PROJECTION_MASK),
            ...(serviceAccountToken.path === "" ? [missing("path")] : []),
          ],
    ),
    ...at(
      "downwardAPI",
      (downwardAPI?.items ?? []).flatMap((file, i) =>
        atIndex("items", i, [
          ...checkFields(file, mask.DOWNWARD_FILE_MASK),
          ...(file.fieldRef === undefined && file.resourceFieldRef === undefined
            ? [missingOneOf("fieldRef", "resourceFieldRef")]
            : []),
          ...(file.fieldRef !== undefined && file.resourceFieldRef !== undefined
            ? [generic("Within a single item, cannot set both", ["resourceFieldRef", "fieldRef"])]
            : []),
          ...(file.path === "" ? [missing("path")] : []),
        ]),
      ),
    ),
    ...(specified.length === 0 ? [missingOneOf("secret", "configMap", "serviceAccountToken", "downwardAPI")] : []),
    ...(specified.length > 1 ? [multipleOneOf(...specified)] : []),
  ];
}

function validateEmptyDir(source: Readonly<Record<string, unknown>> | undefined): FieldErrors {
  if (source === undefined) return [];
  const medium = typeof source["medium"] === "string" ? source["medium"] : "";
  const limit = source["sizeLimit"];
  const size = typeof limit === "string" || typeof limit === "number" ? parseQuantity(limit) : 0;
  return [
    ...(medium === "" || medium === "Memory" ? [] : [invalidValue(medium, "medium")]),
    ...(size === undefined || size < 0 ? [invalidValue(limit as string | number, "sizeLimit")] : []),
  ];
}

function validateImageVolume(source: Readonly<Record<string, unknown>> | undefined): FieldErrors {
  if (source === undefined) return [];
  const policy = typeof source["pullPolicy"] === "string" ? source["pullPolicy"] : "";
  return [
    ...checkFields(source, mask.IMAGE_VOLUME_MASK),
    ...(source["reference"] ? [] : [missing("reference")]),
    ...(["", "IfNotPresent", "Always", "Never"].includes(policy) ? [] : [invalidValue(policy, "pullPolicy")]),
  ];
}

export function validateVolumeMounts(
  mounts: readonly VolumeMount[],
  volumes: Volumes,
  features: FeaturesConfig,
): FieldErrors {
  return mounts.flatMap((mount, i) => {
    const volume = volumes.get(mount.name);
    const earlier = mounts.slice(0, i).map(other => cleanPath(other.mountPath));
    return at(i, [
      ...checkFields(mount, mask.volumeMountMask(features)),
      ...(volume === undefined ? [generic("volumeMount has no matching volume", ["name"])] : []),
      ...validateMountPath(mount.mountPath, earlier),
      ...validateReadOnly(mount, volume),
      ...validatePropagation(mount, features),
    ]);
  });
}

function validateMountPath(path: string, earlier: readonly string[]): FieldErrors {
  if (path === "") return [missing("mountPath")];
  const clean = cleanPath(path);
  if (RESERVED_PATHS.has(clean)) return [generic(`mountPath ${quote(clean)} is a reserved path`, ["mountPath"])];
  if (!path.startsWith("/")) return [invalidValue(path, "mountPath")];
  return earlier.includes(clean) ? [invalidValue(`${quote(path)} must be unique`, "mountPath")] : [];
}

function validateReadOnly(mount: VolumeMount, volume: Volume | undefined): FieldErrors {
  const writable = volume?.emptyDir ?? volume?.persistentVolumeClaim ?? volume?.ephemeral;
  const claim = volume?.persistentVolumeClaim;
  if (mount.readOnly === true) return [];
  if (writable === undefined) return [generic("volume mount should be readOnly for this type of volume", ["readOnly"])];
  return claim?.["readOnly"] === true ? [generic("volume is readOnly but volume mount is not", ["readOnly"])] : [];
}

function validatePropagation(mount: VolumeMount, features: FeaturesConfig): FieldErrors {
  const propagation = mount.mountPropagation;
  if (propagation === undefined) return [];
  const message = `Volume Mount Propagation support is disabled, but found volume mount ${mount.name} with mount propagation`;
  return [
    ...(features["kubernetes.podspec-volumes-mount-propagation"] === "enabled" ? [] : [generic(message, [SELF])]),
    ...(propagation === "None" || propagation === "HostToContainer"
      ? []
      : [generic("mount propagation should be set to None or HostToContainer", ["mountPropagation"])]),
  ];
}

/** A path without `.`, `..` and repeated slashes, as Go's path.Clean makes it. */
function cleanPath(path: string): string {
  const absolute = path.startsWith("/");
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (!absolute) parts.push(part);
  }
  const joined = parts.join("/");
  return absolute ? `/${joined}` : joined === "" ? "." : joined;
}
