package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/executor/sandbox/outbound"
)

// TestMain lets the test binary be its own supervisor, as cmd/cloudshare is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(Supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == outbound.Verb {
		os.Exit(outbound.Serve(os.Args[2:]))
	}
	if text := os.Getenv(burnVar); text != "" {
		os.Exit(burn(text))
	}
	if os.Getenv(evadeVar) != "" {
		fmt.Fprintln(os.Stderr, "evade:", evade())
		os.Exit(1)
	}
	if text := os.Getenv(nestVar); text != "" {
		os.Exit(nest(text))
	}
	if dir := os.Getenv("BE_BROKER"); dir != "" {
		os.Exit(beBroker(dir))
	}
	if dir := os.Getenv(collectedVar); dir != "" {
		os.Exit(beUncollected(dir))
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func suite(change func(*Config)) executortest.Factory {
	return func(t *testing.T) executortest.Env {
		cfg := Config{Keeping: attempts.Keeping{Dir: t.TempDir(), Site: "site-2", Grace: 300 * time.Millisecond}, Cores: 2}
		change(&cfg)
		t.Cleanup(func() { awaitSupervisors(t, cfg.Dir) })
		// A supervisor is a process of the test program, slow to start beside others.
		slack, wait := 3*time.Second, time.Duration(0)
		if os.Getenv(guestVar) != "" { // and on processors in software, which wait for others besides
			slack, wait = 15*time.Second, 3*time.Minute
		}
		return executortest.Env{
			Site: cfg.Site, Grace: cfg.Grace, Break: breakForks, Slack: slack, Patience: wait,
			Open: func(t *testing.T) executor.Handler {
				t.Helper()
				h, err := Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				return h
			},
		}
	}
}

// awaitSupervisors waits until all that have their slots in a folder have ended: one
// that has just begun, and loses its broker, may still write there.
func awaitSupervisors(t *testing.T, dir string) {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(dir, "slots", "*", "journal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range journals {
		f, err := os.Open(path)
		if err != nil {
			continue // its slot has gone
		}
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH) // it is locked as long as the process lives
		}
		if f.Close(); err != nil {
			t.Errorf("wait for the supervisor of %s: %v", path, err)
		}
	}
}

func TestConformance(t *testing.T) {
	executortest.Run(t, suite(func(*Config) {}))
}

func TestConformanceWithoutCgroups(t *testing.T) {
	executortest.Run(t, suite(func(c *Config) { c.NoCgroups = true }))
}

// breakForks lets the supervisors there are open no more files, so that they cannot fork.
func breakForks(t *testing.T, h executor.Handler) (mend func()) {
	local, ok := h.(*Handler)
	if !ok {
		t.Fatalf("a handler of type %T", h)
	}
	o := &opened{t, local}
	o.limitFiles(3)
	return func() { o.limitFiles(1 << 12) }
}
