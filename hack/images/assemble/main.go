// Command assemble writes a container image as an archive that `ctr images import`, `docker load`, `podman load` and
// `kind load image-archive` read. It needs neither a container engine nor a registry.
//
// It reads a description of the image as JSON on standard input and writes the archive to the path given with -o.
// The same description over the same files makes the same bytes: times are fixed, entries sorted, owners explicit.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// epoch is the time of every file and of the image itself.
var epoch = time.Unix(0, 0).UTC()

// description is what hack/images/image.ts writes.
type description struct {
	Ref          string            `json:"ref"`
	Architecture string            `json:"architecture"`
	User         string            `json:"user"`
	WorkingDir   string            `json:"workingDir"`
	Entrypoint   []string          `json:"entrypoint"`
	Cmd          []string          `json:"cmd"`
	Env          []string          `json:"env"`
	Labels       map[string]string `json:"labels"`
	Layers       []layer           `json:"layers"`
}

// layer becomes one layer of the image; a change in one leaves the others' digests alone.
type layer struct {
	Comment string  `json:"comment"`
	Entries []entry `json:"entries"`
}

// entry is one of: a file copied from the host, a file with the given text, a directory, a symbolic link, or the
// contents of a Debian package under the given prefixes.
type entry struct {
	Path    string   `json:"path"`
	Mode    int64    `json:"mode"`
	UID     int      `json:"uid"`
	GID     int      `json:"gid"`
	File    string   `json:"file"`
	Text    *string  `json:"text"`
	Dir     bool     `json:"dir"`
	Link    string   `json:"link"`
	Deb     string   `json:"deb"`
	Include []string `json:"include"`
}

func main() {
	output := flag.String("o", "", "path of the archive to write")
	flag.Parse()
	if err := run(os.Stdin, *output); err != nil {
		fmt.Fprintln(os.Stderr, "assemble:", err)
		os.Exit(1)
	}
}

func run(input io.Reader, output string) error {
	if output == "" {
		return errors.New("-o is required")
	}
	var d description
	decoder := json.NewDecoder(input)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("description: %w", err)
	}
	tag, err := name.NewTag(d.Ref, name.StrictValidation)
	if err != nil {
		return err
	}
	image, err := assemble(d)
	if err != nil {
		return err
	}
	partial := output + ".partial"
	if err := tarball.WriteToFile(partial, tag, image); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return os.Rename(partial, output)
}

func assemble(d description) (v1.Image, error) {
	additions := make([]mutate.Addendum, 0, len(d.Layers))
	for _, l := range d.Layers {
		content, err := l.tar()
		if err != nil {
			return nil, fmt.Errorf("layer %q: %w", l.Comment, err)
		}
		// Not compressed: the archive goes to a node on the same machine, where compressing would cost more than it saves.
		made := static.NewLayer(content, types.DockerUncompressedLayer)
		additions = append(additions, mutate.Addendum{
			Layer:   made,
			History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "hack/images", Comment: l.Comment},
		})
	}
	image, err := mutate.Append(empty.Image, additions...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS = "linux"
	file.Architecture = d.Architecture
	file.Created = v1.Time{Time: epoch}
	file.Config = v1.Config{
		User:       d.User,
		WorkingDir: d.WorkingDir,
		Entrypoint: d.Entrypoint,
		Cmd:        d.Cmd,
		Env:        d.Env,
		Labels:     d.Labels,
	}
	return mutate.ConfigFile(image, file)
}

// item is one entry of a layer's tar.
type item struct {
	header  tar.Header
	content []byte
}

func (l layer) tar() ([]byte, error) {
	items := map[string]item{}
	for _, e := range l.Entries {
		var err error
		if e.Deb != "" {
			err = addPackage(items, e)
		} else {
			err = addOwn(items, e)
		}
		if err != nil {
			return nil, err
		}
	}
	addParents(items)
	names := make([]string, 0, len(items))
	for n := range items {
		names = append(names, n)
	}
	slices.Sort(names)
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, n := range names {
		it := items[n]
		it.header.Name = n
		if it.header.Typeflag == tar.TypeDir {
			it.header.Name += "/"
		}
		it.header.ModTime = epoch
		it.header.Format = tar.FormatPAX
		it.header.Size = int64(len(it.content))
		if err := w.WriteHeader(&it.header); err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		if _, err := w.Write(it.content); err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func addOwn(items map[string]item, e entry) error {
	target := clean(e.Path)
	if target == "" {
		return errors.New("entry without a path")
	}
	header := tar.Header{Mode: e.Mode, Uid: e.UID, Gid: e.GID}
	switch {
	case e.Dir:
		header.Typeflag = tar.TypeDir
		items[target] = item{header: header}
	case e.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.Link, 0o777
		items[target] = item{header: header}
	case e.Text != nil:
		header.Typeflag = tar.TypeReg
		items[target] = item{header: header, content: []byte(*e.Text)}
	case e.File != "":
		content, err := os.ReadFile(e.File)
		if err != nil {
			return err
		}
		header.Typeflag = tar.TypeReg
		items[target] = item{header: header, content: content}
	default:
		return fmt.Errorf("%s: neither file, text, dir, link nor deb", e.Path)
	}
	return nil
}

// addPackage unpacks a Debian package with dpkg-deb, which knows every compression in use.
func addPackage(items map[string]item, e entry) error {
	cmd := exec.Command("dpkg-deb", "--fsys-tarfile", e.Deb)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("dpkg-deb %s: %w: %s", e.Deb, err, complaint.String())
	}
	r := tar.NewReader(bytes.NewReader(out))
	found := 0
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Deb, err)
		}
		target := merged(clean(header.Name))
		if header.Typeflag == tar.TypeDir || !slices.ContainsFunc(e.Include, func(prefix string) bool {
			return strings.HasPrefix(target, prefix)
		}) {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", e.Deb, header.Name, err)
		}
		link := header.Linkname
		if strings.HasPrefix(link, "/") {
			link = "/" + merged(clean(link))
		}
		if header.Typeflag == tar.TypeLink {
			link = merged(clean(link))
		}
		items[target] = item{
			header:  tar.Header{Typeflag: header.Typeflag, Linkname: link, Mode: header.Mode},
			content: content,
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s: nothing under %v", e.Deb, e.Include)
	}
	return nil
}

// merged moves /lib, /lib64, /bin and /sbin under /usr, where links from the root lead (Debian's merged layout), so that
// packages that ship either layout land in one place.
func merged(p string) string {
	first, _, _ := strings.Cut(p, "/")
	switch first {
	case "lib", "lib64", "bin", "sbin":
		return "usr/" + p
	}
	return p
}

func addParents(items map[string]item) {
	for n := range items {
		for parent := path.Dir(n); parent != "."; parent = path.Dir(parent) {
			if _, ok := items[parent]; !ok {
				items[parent] = item{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
			}
		}
	}
}

func clean(p string) string {
	return strings.TrimPrefix(path.Clean("/"+p), "/")
}
