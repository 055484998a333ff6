package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the cloudshare binary into dir, as `make build` does, with these
// build tags, and returns its path.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	bin := filepath.Join(dir, "cloudshare")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", strings.Join(tags, ","),
		"-ldflags", "-s -w", "-o", bin, "github.com/cloudshare/cloudshare/cmd/cloudshare")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cloudshare: %w\n%s", err, out)
	}
	return bin, nil
}

// BuildAndRun is the body of a TestMain: it builds the binary into a folder of its own,
// which is gone afterwards, and returns what run returns of it.
func BuildAndRun(run func(binary string) int) int {
	dir, err := os.MkdirTemp("", "cloudshare-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make folder for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary, err := Build(context.Background(), dir)
	if err == nil {
		err = MakeShared(SharedBeside(binary))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(binary)
}

// SharedBeside returns the folder, beside the binary of BuildAndRun, that any user may write: tasks in
// sandboxes can if their broker shares it (sandbox.share).
func SharedBeside(binary string) string { return filepath.Join(filepath.Dir(binary), "shared") }

// MakeShared makes a folder that any user may write, as tasks of a broker that is root
// have another one.
func MakeShared(dir string) error {
	return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777))
}

// MakeSharedFile makes an empty file that any user may write, likewise.
func MakeSharedFile(path string) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
}
