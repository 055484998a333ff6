package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// starts receives the moments at which stamp processes began to run.
type starts struct {
	path string
	conn *net.UnixConn
}

// buildStamp builds the little program that tasks run.
func buildStamp(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path,
		"github.com/cloudshare/cloudshare/test/bench/stamp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build stamp: %w\n%s", err, out)
	}
	return nil
}

func listenStarts(dir string) (*starts, error) {
	path := filepath.Join(dir, "starts.sock")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen for starts: %w", err)
	}
	return &starts{path: path, conn: conn}, nil
}

// startLimit bounds the wait for one process.
const startLimit = 20 * time.Second

// next waits for one process and returns when it began, by its wall clock.
func (s *starts) next(ctx context.Context) (time.Time, error) {
	deadline := time.Now().Add(startLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := s.conn.SetReadDeadline(deadline); err != nil {
		return time.Time{}, fmt.Errorf("await start: %w", err)
	}
	buf := make([]byte, 32)
	n, err := s.conn.Read(buf)
	if err != nil {
		return time.Time{}, fmt.Errorf("await start: %w", err)
	}
	ns, err := strconv.ParseInt(string(buf[:n]), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("await start: %w", err)
	}
	return time.Unix(0, ns), nil
}

func (s *starts) close() {
	s.conn.Close()
	_ = os.Remove(s.path) // the scratch folder goes too
}
