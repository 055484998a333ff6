package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
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

// prepareStamp builds it in a folder of its own below dir, which tasks in sandboxes can be let see: see shares.
func prepareStamp(ctx context.Context, dir string) (path string, err error) {
	shared := filepath.Join(dir, "shared")
	if err = testbed.MakeShared(shared); err != nil {
		return "", fmt.Errorf("make folder of stamp: %w", err)
	}
	path = filepath.Join(shared, "stamp")
	return path, buildStamp(ctx, path)
}

// shares has a broker's sandboxes see the stamp program and the socket beside it: other sites' tasks see nothing else
// of this machine's files.
func (env environment) shares() string { return "CLOUDSHARE_SANDBOX_SHARE=" + filepath.Dir(env.stamp) }

// listenStarts listens beside the stamp program. Any user may send: tasks in sandboxes are another one.
func listenStarts(env environment) (*starts, error) {
	path := filepath.Join(filepath.Dir(env.stamp), "starts.sock")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen for starts: %w", err)
	}
	if err = os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for starts: %w", err), conn.Close())
	}
	return &starts{path: path, conn: conn}, nil
}

// startLimit bounds the wait for one process.
const startLimit = 20 * time.Second

// start is one process that began to run.
type start struct {
	at        time.Time // by its wall clock
	job, site string    // of a task, else ""
	attempt   int       // from 1; 0 = not a task
}

// next waits for one process.
func (s *starts) next(ctx context.Context) (start, error) { return s.nextWithin(ctx, startLimit) }

// nextWithin waits for so long.
func (s *starts) nextWithin(ctx context.Context, limit time.Duration) (start, error) {
	deadline := time.Now().Add(limit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := s.conn.SetReadDeadline(deadline); err != nil {
		return start{}, fmt.Errorf("await start: %w", err)
	}
	buf := make([]byte, 512)
	n, err := s.conn.Read(buf)
	if err != nil {
		return start{}, fmt.Errorf("await start: %w", err)
	}
	return parseStart(string(buf[:n]))
}

// parseStart reads what the stamp program sends.
func parseStart(text string) (start, error) {
	f := strings.Split(text, " ")
	if len(f) != 4 {
		return start{}, fmt.Errorf("parse start %q: want four words", text)
	}
	ns, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return start{}, fmt.Errorf("parse start %q: %w", text, err)
	}
	st := start{at: time.Unix(0, ns), job: f[1], site: f[3]}
	if f[2] != "" {
		if st.attempt, err = strconv.Atoi(f[2]); err != nil {
			return start{}, fmt.Errorf("parse start %q: %w", text, err)
		}
	}
	return st, nil
}

func (s *starts) close() {
	s.conn.Close()
	_ = os.Remove(s.path) // the scratch folder goes too
}
