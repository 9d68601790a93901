package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func describe(t *testing.T, directory string) []byte {
	t.Helper()
	program := filepath.Join(directory, "program")
	if err := os.WriteFile(program, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "hello"
	made, err := json.Marshal(map[string]any{
		"ref": "example.dev/a:1", "architecture": "arm64", "user": "65532", "entrypoint": []string{"/app/a"},
		"labels": map[string]string{"k": "v"},
		"layers": []map[string]any{{"comment": "all", "entries": []map[string]any{
			{"path": "tmp", "dir": true, "mode": 0o1777},
			{"path": "app/a", "file": program, "mode": 0o755},
			{"path": "app/b/c", "text": text, "mode": 0o644},
			{"path": "lib", "link": "usr/lib"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTheSameDescriptionMakesTheSameBytes(t *testing.T) {
	directory := t.TempDir()
	description := describe(t, directory)
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(directory, "out.tar")
		if err := run(bytes.NewReader(description), path); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the two archives differ")
	}
}

func TestTheArchiveHasWhatWasDescribed(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "out.tar")
	if err := run(bytes.NewReader(describe(t, directory)), path); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("example.dev/a:1")
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || config.Config.User != "65532" ||
		!slices.Equal(config.Config.Entrypoint, []string{"/app/a"}) || config.Config.Labels["k"] != "v" {
		t.Errorf("config: %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %v %v", layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, header.FileInfo().Mode().String()+" "+header.Name+" "+header.Linkname)
	}
	want := []string{
		"drwxr-xr-x app/ ", "-rwxr-xr-x app/a ", "drwxr-xr-x app/b/ ", "-rw-r--r-- app/b/c ",
		"Lrwxrwxrwx lib usr/lib", "dtrwxrwxrwx tmp/ ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMergedLayout(t *testing.T) {
	for in, want := range map[string]string{
		"lib/x86_64-linux-gnu/libc.so.6": "usr/lib/x86_64-linux-gnu/libc.so.6",
		"lib64/ld.so":                    "usr/lib64/ld.so",
		"usr/lib/a":                      "usr/lib/a",
		"library":                        "library",
	} {
		if got := merged(in); got != want {
			t.Errorf("merged(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestARefusalSaysWhatIsWrong(t *testing.T) {
	for description, want := range map[string]string{
		`{"ref":"a b"}`: "tag must be",
		`{"rev":"a"}`:   "unknown field",
		`{"ref":"example.dev/a:1","layers":[{"comment":"x","entries":[{"path":"a"}]}]}`: `layer "x": a: neither file`,
	} {
		err := run(strings.NewReader(description), filepath.Join(t.TempDir(), "out.tar"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", description, err, want)
		}
	}
}
