package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// image of an archive: its files, and what a container of it runs by itself.
type image struct {
	name       string
	layer      []byte
	entrypoint []string
}

// pack writes images as `docker save` does: containerd imports that.
func pack(images ...image) ([]byte, error) {
	var files []file
	var manifest []map[string]any
	for _, i := range images {
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH, "os": "linux",
			"config": map[string]any{"Entrypoint": i.entrypoint, "Env": []string{"PATH=/bin:/"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(i.layer))}},
		})
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%x", sha256.Sum256(config))
		files = append(files, file{name + "/layer.tar", i.layer, 0o644}, file{name + ".json", config, 0o644})
		manifest = append(manifest, map[string]any{
			"Config": name + ".json", "RepoTags": []string{i.name}, "Layers": []string{name + "/layer.tar"},
		})
	}
	list, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	return archive(append(files, file{"manifest.json", list, 0o644})...)
}

// program returns an image FROM scratch of one static program, /app.
func program(name, path string) (image, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return image{}, fmt.Errorf("read an image's program: %w", err)
	}
	layer, err := archive(file{"app", b, 0o755})
	return image{name: name, layer: layer, entrypoint: []string{"/app"}}, err
}

// file of an archive.
type file struct {
	name string
	data []byte
	mode int64
}

func archive(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{
			Name: f.name, Mode: f.mode, Size: int64(len(f.data)),
			Typeflag: tar.TypeReg,
		}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
