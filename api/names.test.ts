import { expect, test } from "vitest";
import { childName, deploymentName, privateServiceName, revisionName, tagServiceName } from "./names.ts";

// Made by knative.dev/pkg v0.0.0-20260727151759, kmeta.ChildName.
const golden: [parent: string, suffix: string, name: string][] = [
  ["hello", "-deployment", "hello-deployment"],
  ["s".repeat(52), "-deployment", `${"s".repeat(52)}-deployment`],
  ["s".repeat(53), "-deployment", "ssssssssssssssssssss694b95e4e4f87c83a5b9b8308068c29c-deployment"],
  [`my-service-${"x".repeat(50)}`, "-00001", "my-service-xxxxxxxxxxxxxxc322d9248360e79807809b8d790df878-00001"],
  ["p".repeat(63), "-private", "pppppppppppppppppppppppd589298c9732d002373545aecabd1105-private"],
  ["p".repeat(40), `-${"q".repeat(30)}`, "ppppppppppppppppppppppppppppppp1da5d394363662e41fae4f941456a2b6"],
  ["p".repeat(40), `-${"q".repeat(40)}`, "ppppppppppppppppppppppppppppppp9be3848d9715b24b98f5aa5229178ad3"],
  ["a", `-${"b".repeat(70)}`, "a3ef0605f3d586ef66d48cce9ccaac330-bbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],
  ["ab", "c-.".repeat(30), "ab7dd7e0cb0972cfb0ee52da22c2075b6dc-.c-.c-.c-.c-.c-.c-.c-.c-.c"],
  ["z".repeat(17), `a.-.-.-.-.-.-.${"k".repeat(40)}`, "zzzzzzzzzzzzzzzzzf485e32142f4c3541e3f8b602c2fffa0a"],
  ["z".repeat(63), "", "z".repeat(63)],
  ["z".repeat(64), "", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz3ecc49f9d9d6c263b4f0de7fc3f38aed"],
];

test.each(golden)("child of %s with suffix %s is named as Knative names it", (parent, suffix, name) => {
  expect(childName(parent, suffix)).toBe(name);
});

test("children of a revision", () => {
  expect(revisionName("hello", 7)).toBe("hello-00007");
  expect(deploymentName("hello-00007")).toBe("hello-00007-deployment");
  expect(privateServiceName("hello-00007")).toBe("hello-00007-private");
  expect(tagServiceName("hello", "blue")).toBe("blue-hello");
});
