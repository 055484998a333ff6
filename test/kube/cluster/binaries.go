package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotBuilt says that the components are not there.
var ErrNotBuilt = errors.New("no Kubernetes is built: run `bash .ci/kube build`")

// EnvBinaries names the folder of the components' binaries; without it
// `.ci/kube path` says where they are.
const EnvBinaries = "CLOUDSHARE_KUBE_BIN"

// Binary returns the path of a component's binary: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet, kwok or helm.
func Binary(name string) (string, error) {
	dir := os.Getenv(EnvBinaries)
	if dir == "" {
		var err error
		if dir, err = cache(); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	return path, nil
}

// cache asks the build's own script, which is above every package's folder.
func cache() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		script := filepath.Join(dir, ".ci", "kube")
		if _, err := os.Stat(script); err == nil {
			out, err := exec.Command("bash", script, "path").Output()
			if err != nil {
				return "", fmt.Errorf("ask %s path: %w", script, err)
			}
			return string(bytes.TrimSpace(out)), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%w: or name its folder in %s", ErrNotBuilt, EnvBinaries)
		}
	}
}
