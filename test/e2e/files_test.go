package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// sweep is a folder of a user: what a bag of tasks takes, and what it gave back.
type sweep struct {
	dir   string
	tasks int
	big   []byte // each task has it
	small [][]byte
}

// newSweep makes its inputs, of random bytes.
func newSweep(t *testing.T, tasks, bigBytes int) sweep {
	t.Helper()
	s := sweep{dir: t.TempDir(), tasks: tasks}
	random := rand.NewChaCha8([32]byte{1})
	drawn := func(n int) []byte {
		b := make([]byte, n)
		_, _ = random.Read(b) // never fails
		return b
	}
	must(t, os.Mkdir(filepath.Join(s.dir, "in"), 0o755))
	s.big = drawn(bigBytes)
	must(t, os.WriteFile(filepath.Join(s.dir, "big"), s.big, 0o644))
	for i := range tasks {
		s.small = append(s.small, drawn(20<<10+i))
		must(t, os.WriteFile(filepath.Join(s.dir, "in", fmt.Sprintf("%03d", i)), s.small[i], 0o644))
	}
	return s
}

// cli runs the command as a user of a site does, in the sweep's folder, and returns what it prints.
func (s *sweep) cli(t *testing.T, at *testbed.Site, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cloudshare, args...)
	cmd.Env, cmd.Dir = append(append(os.Environ(), at.Env()...), "CLOUDSHARE_ADDR="+at.URL.String()), s.dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cloudshare %s: %v\n%s", strings.Join(args, " "), err, said.Bytes())
	}
	return out
}

// submit sends the inputs and returns the job's id.
func (s *sweep) submit(t *testing.T, at *testbed.Site, more ...string) string {
	t.Helper()
	args := append([]string{
		"submit", "--format", "json", "--input", "big", "--input-each", "in/*:in.txt", "--output", "out/", "--output-max", "8Mi",
	}, more...)
	out := s.cli(t, at, append(args, "--", "/bin/sh", "-c",
		"mkdir out && cat big in.txt | sha256sum >out/sum && cat in.txt >out/copy.bin")...)
	var a testbed.Accepted
	must(t, json.Unmarshal(out, &a))
	return a.ID
}

// check compares what came back with what was sent.
func (s *sweep) check(t *testing.T, at *testbed.Site, id string) {
	t.Helper()
	into := filepath.Join(s.dir, "results-"+id)
	s.cli(t, at, "fetch", id, "-o", into)
	for i, small := range s.small {
		dir := filepath.Join(into, fmt.Sprint(i), "out")
		sum, err := os.ReadFile(filepath.Join(dir, "sum"))
		must(t, err)
		both := sha256.Sum256(append(append([]byte{}, s.big...), small...))
		if want := fmt.Sprintf("%x", both); !strings.HasPrefix(string(sum), want) {
			t.Errorf("task %d has summed %.64s, its inputs are %s", i, sum, want)
		}
		if copied, err := os.ReadFile(filepath.Join(dir, "copy.bin")); err != nil || !bytes.Equal(copied, small) {
			t.Errorf("task %d: %d bytes came back of %d: %v", i, len(copied), len(small), err)
		}
	}
	files := 0
	must(t, filepath.WalkDir(into, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	}))
	if files != 2*s.tasks {
		t.Errorf("%d files came back, want %d", files, 2*s.tasks)
	}
}

// TestSweepWithFiles: 200 tasks take files, each one of its own, and leave some, over three sites. One site is killed
// while its tasks are being given their inputs, then their owner, and each comes back. What the user fetches is equal
// to the byte.
func TestSweepWithFiles(t *testing.T) {
	t.Parallel()
	// So slow that inputs are on their way when the site is killed; and no lease ends while a busy machine starts one.
	fed := start(t, 3, 2, "CLOUDSHARE_LEASE=30s", "CLOUDSHARE_DATA_UPLINK=16Mi")
	home, victim := fed.Sites[0], fed.Sites[2]
	s := newSweep(t, 200, 24<<20)
	id := s.submit(t, home)
	await(t, "inputs on their way to "+victim.Name, func() error {
		parts, err := filepath.Glob(filepath.Join(victim.Dir, "data", "data", "cache", "*", "*", "*.part"))
		if err == nil && len(parts) == 0 {
			err = fmt.Errorf("%s has no partial blob", victim.Name)
		}
		return err
	})
	must(t, victim.Kill())
	must(t, home.Kill())
	must(t, fed.Restart(within(t), home))
	must(t, fed.Restart(within(t), victim))
	job, err := home.AwaitJob(t.Context(), id, "succeeded", "failed", "lost", "cancelled")
	must(t, err)
	if job.State != "succeeded" {
		t.Fatalf("job %s ended %s (%s), tasks %v", id, job.State, job.Reason, job.Counts)
	}
	for _, at := range fed.Sites {
		if n := sitesOf(tasksOf(t, home, id))[at.Name]; n == 0 {
			t.Errorf("no task has run at %s", at.Name)
		}
	}
	s.check(t, home, id)
	agree(t, fed)
}
