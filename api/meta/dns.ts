/** Checks of names with the messages of k8s.io/apimachinery/pkg/util/validation, which clients compare literally. */

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

const whole = (format: string) => new RegExp(`^${format}$`);

function regexError(message: string, format: string, ...examples: string[]): string {
  const like = examples.map(example => `'${example}', `).join(" or ");
  return `${message} (e.g. ${like}regex used for validation is '${format}')`;
}

const tooLong = (limit: number): string => `must be no more than ${limit} bytes`;

const SUBDOMAIN_MESSAGE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

/** Errors of a DNS-1123 subdomain (253 bytes); none: it is one. */
export function dns1123SubdomainErrors(value: string): string[] {
  return [
    ...(value.length > 253 ? [tooLong(253)] : []),
    ...(whole(SUBDOMAIN).test(value) ? [] : [regexError(SUBDOMAIN_MESSAGE, SUBDOMAIN, "example.com")]),
  ];
}

/** Errors of a DNS-1123 label (63 bytes). */
export function dns1123LabelErrors(value: string): string[] {
  const message =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  const form = whole(LABEL).test(value)
    ? []
    : whole(SUBDOMAIN).test(value)
      ? ["must not contain dots"]
      : [regexError(message, LABEL, "my-name", "123-abc")];
  return [...(value.length > 63 ? [tooLong(63)] : []), ...form];
}

/** Errors of a DNS-1035 label (63 bytes, begins with a letter); as a prefix it may end in a dash. */
export function dns1035LabelErrors(value: string, prefix = false): string[] {
  const name = prefix && value.length > 1 && value.endsWith("-") ? `${value.slice(0, -1)}a` : value;
  const message =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
  return [
    ...(name.length > 63 ? [tooLong(63)] : []),
    ...(whole(LABEL_1035).test(name) ? [] : [regexError(message, LABEL_1035, "my-name", "abc-123")]),
  ];
}

/** Errors of a label or annotation key: an optional DNS prefix and a name of at most 63 bytes. */
export function qualifiedNameErrors(value: string): string[] {
  const message =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  const parts = value.split("/");
  const errors: string[] = [];
  let name = value;
  if (parts.length === 2) {
    const [prefix, rest] = parts as [string, string];
    name = rest;
    if (prefix.length === 0) errors.push("prefix part must be non-empty");
    else errors.push(...dns1123SubdomainErrors(prefix).map(error => `prefix part ${error}`));
  } else if (parts.length > 2) {
    return [
      `a valid label key ${regexError(message, NAME_PART, "MyName", "my.name", "123-abc")} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (name.length === 0) errors.push("name part must be non-empty");
  else if (name.length > 63) errors.push(`name part ${tooLong(63)}`);
  if (!whole(NAME_PART).test(name)) {
    errors.push(`name part ${regexError(message, NAME_PART, "MyName", "my.name", "123-abc")}`);
  }
  return errors;
}

/** Whether a name is a fully qualified domain name of two labels or more. */
export function isFullyQualifiedDomainName(value: string): boolean {
  const name = value.endsWith(".") ? value.slice(0, -1) : value;
  const labels = name.split(".");
  return name.length <= 253 && labels.length >= 2 && labels.every(label => dns1123LabelErrors(label).length === 0);
}
