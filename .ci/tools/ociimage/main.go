// Command ociimage writes a container image without a container engine: a static
// program and a CA bundle, FROM scratch, for user 65532. The result is the same,
// bit by bit, for the same two files; `docker load` and `podman load` read it.
//
// Usage: ociimage -program FILE -ca FILE -tag NAME:TAG -out FILE.tar
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
)

func main() {
	program := flag.String("program", "", "static `FILE` that the image runs")
	ca := flag.String("ca", "/etc/ssl/certs/ca-certificates.crt", "`FILE` of certificates to trust")
	tag := flag.String("tag", "", "`NAME:TAG` of the image")
	out := flag.String("out", "", "`FILE` to write")
	flag.Parse()
	if err := run(*program, *ca, *tag, *out); err != nil {
		fmt.Fprintln(os.Stderr, "ociimage:", err)
		os.Exit(1)
	}
}

func run(program, ca, tag, out string) error {
	if program == "" || tag == "" || out == "" {
		return errors.New("-program, -tag and -out are needed")
	}
	if err := checkStatic(program); err != nil {
		return err
	}
	image, err := build(program, ca, tag)
	if err != nil {
		return err
	}
	return os.WriteFile(out, image, 0o644)
}

func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}

// file of a tar; without data it is a folder.
type file struct {
	name string
	data []byte
	mode int64
	uid  int
}

// user of the image, as distroless images have it: nobody's on the machine.
const user = 65532

func build(program, ca, tag string) ([]byte, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	certs, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read the CA bundle (apt-get install ca-certificates): %w", err)
	}
	layer, err := pack([]file{
		{"etc/", nil, 0o755, 0},
		{"etc/passwd", []byte(fmt.Sprintf("root:x:0:0::/:/none\ncloudshare:x:%d:%d::/data:/none\n", user, user)), 0o644, 0},
		{"etc/ssl/", nil, 0o755, 0},
		{"etc/ssl/certs/", nil, 0o755, 0},
		{"etc/ssl/certs/ca-certificates.crt", certs, 0o644, 0},
		{"cloudshare", binary, 0o755, 0},
		{"data/", nil, 0o700, user},
		{"tmp/", nil, 0o1777, 0},
	})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", user, user), "Entrypoint": []string{"/cloudshare"}, "WorkingDir": "/data",
			"Env": []string{"PATH=/", "CLOUDSHARE_DATA_DIR=/data"}, "StopSignal": "SIGTERM",
			"Labels": map[string]string{"org.opencontainers.image.title": "cloudshare", "org.opencontainers.image.licenses": "Apache-2.0"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": digest(config) + ".json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return pack([]file{
		{digest(config) + ".json", config, 0o644, 0}, {"layer.tar", layer, 0o644, 0}, {"manifest.json", manifest, 0o644, 0},
	})
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

func pack(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{
			Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Uid: f.uid, Gid: f.uid,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if f.data == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
