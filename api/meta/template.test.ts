import { expect, test } from "vitest";
import { parseTemplate, TemplateError } from "./template.ts";

const data = { Name: "hello", Namespace: "ns", Labels: { team: "blue" }, Annotations: { "a.b/c": "x" } };

test.each([
  ["{{.Name}}.{{.Namespace}}.example.com", "hello.ns.example.com"],
  ["{{ .Name }}-{{.Labels.team}}", "hello-blue"],
  ['{{index .Annotations "a.b/c"}}.{{index .Labels "absent"}}end', "x.end"],
  ["a {{- .Name -}} b", "ahellob"],
  ["plain", "plain"],
])("%s", (source, rendered) => {
  expect(parseTemplate(source).render(data)).toBe(rendered);
});

test("what is not understood is refused when the template is read", () => {
  for (const source of ["{{if .Name}}x{{end}}", "{{.Name", "{{.Name | upper}}", "{{index .Labels key}}"]) {
    expect(() => parseTemplate(source)).toThrow(TemplateError);
  }
  expect(() => parseTemplate("{{.Nmae}}").render(data)).toThrow("template field .Nmae does not exist");
});
