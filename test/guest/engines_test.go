//go:build guest

package guest

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// engines returns a folder with the container engines of this machine, and all that they load, for a guest's disk; and
// with this product, which its tests would build. Where each has its place says the guest's init.
func engines(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	bin, lib := filepath.Join(root, "engines", "bin"), filepath.Join(root, "engines", "lib")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.MkdirAll(lib, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dockerd", "docker-init", "containerd", "containerd-shim-runc-v2", "runc", "podman", "conmon"} {
		path := program(name, t)
		copyFile(t, path, filepath.Join(bin, name))
		for _, library := range libraries(t, path) {
			copyFile(t, library, filepath.Join(lib, filepath.Base(library)))
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", filepath.Join(bin, "cloudshare"), "../../cmd/cloudshare")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build cloudshare: %v\n%s", err, out)
	}
	return root
}

// loaded matches what ldd says of a library, and of the program that loads them.
var loaded = regexp.MustCompile(`(?m)(?:=> |^\s+)(/\S+) \(0x`)

// libraries returns the paths of all that a program loads; a static one loads nothing.
func libraries(t *testing.T, path string) (paths []string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Section(".interp") == nil {
		return nil
	}
	out, err := exec.CommandContext(t.Context(), "ldd", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ldd %s: %v\n%s", path, err, out)
	}
	for _, m := range loaded.FindAllStringSubmatch(string(out), -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// copyFile copies a program or a library; one that is there is the same.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.WriteFile(to, b, 0o600), os.Chmod(to, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
}
