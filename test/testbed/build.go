package testbed

import (
	"context"
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
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", strings.Join(tags, ","), "-o", bin,
		"github.com/cloudshare/cloudshare/cmd/cloudshare")
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
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(binary)
}
