/**
 * The part of Go's text/template that domain, tag and container name templates use: `{{.Field}}`, `{{index .Map "key"}}`
 * and `{{.Map.key}}`, with `{{-` and `-}}`. Anything else is refused when the template is read, not when it is used.
 */
export interface Template {
  readonly source: string;
  /** Throws TemplateError for a field that the data does not have; a missing key of a map is an empty text. */
  render(data: TemplateData): string;
}

export type TemplateData = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

export class TemplateError extends Error {
  readonly code = "INVALID_TEMPLATE";
  constructor(message: string) {
    super(message);
    this.name = "TemplateError";
  }
}

type Part = { readonly text: string } | { readonly path: readonly [field: string, key?: string] };

export function parseTemplate(source: string): Template {
  const parts: Part[] = [];
  let rest = source;
  let trimNext = false;
  while (rest !== "") {
    const open = rest.indexOf("{{");
    const literal = open < 0 ? rest : rest.slice(0, open);
    const trimRight = open >= 0 && /^\{\{- /.test(rest.slice(open));
    const left = trimNext ? literal.trimStart() : literal;
    parts.push({ text: trimRight ? left.trimEnd() : left });
    if (open < 0) break;
    const close = rest.indexOf("}}", open);
    if (close < 0) throw new TemplateError(`unclosed action in template ${JSON.stringify(source)}`);
    const action = rest.slice(open + 2, close);
    trimNext = / -$/.test(action);
    parts.push({ path: parseAction(action.replace(/^- /, "").replace(/ -$/, "").trim()) });
    rest = rest.slice(close + 2);
  }
  return {
    source,
    render: data => parts.map(part => ("text" in part ? part.text : lookUp(part.path, data))).join(""),
  };
}

function parseAction(action: string): readonly [field: string, key?: string] {
  const field = /^\.([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?$/.exec(action);
  if (field !== null) return field[2] === undefined ? [field[1]!] : [field[1]!, field[2]];
  const index = /^index \.([A-Za-z_]\w*) (?:"([^"\\]*)"|`([^`]*)`)$/.exec(action);
  if (index !== null) return [index[1]!, index[2] ?? index[3]!];
  throw new TemplateError(`template action {{${action}}} is not supported: use {{.Field}} or {{index .Map "key"}}`);
}

function lookUp([field, key]: readonly [field: string, key?: string], data: TemplateData): string {
  const value = data[field];
  if (value === undefined) throw new TemplateError(`template field .${field} does not exist`);
  if (key === undefined) {
    if (typeof value === "string") return value;
    throw new TemplateError(`template field .${field} is a map: use {{index .${field} "key"}}`);
  }
  if (typeof value === "string") throw new TemplateError(`template field .${field} is not a map`);
  return value[key] ?? "";
}
