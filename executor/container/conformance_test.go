//go:build container

package container_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// program is this product as a static binary, built once.
var program string

func TestMain(m *testing.M) {
	if dir := os.Getenv("BE_BROKER"); dir != "" {
		beBroker(dir)
	}
	if program = os.Getenv("CLOUDSHARE_BINARY"); program != "" { // where nothing can be built
		os.Exit(m.Run())
	}
	os.Exit(testbed.BuildAndRun(func(binary string) int {
		program = binary
		return m.Run()
	}))
}

// config is of a handler on an engine; scripts see the test's own files.
func config(t *testing.T, e *engines.Engine) container.Config {
	t.Helper()
	return container.Config{
		Keeping: attempts.Keeping{
			Dir: filepath.Join(t.TempDir(), "container"), Site: "site-2", Grace: 300 * time.Millisecond,
			Logger: zerolog.New(zerolog.NewTestWriter(t)),
		},
		Engine: e.Address, Federation: "test", Cores: 2, Network: "none", Executable: program,
		Mounts: []string{os.TempDir() + ":" + os.TempDir()}, //nolint:usetesting // all of the tests' folders are below it
	}
}

// storage is that of a handler for a rig, or for the suite.
func storage(cfg container.Config) executortest.Env {
	return executortest.Env{
		Site: cfg.Site, Grace: cfg.Grace, Image: engines.Image, Slack: 3 * time.Second,
		NoBreak: "engines are broken in TestNothingStarts",
		Open: func(t *testing.T) executor.Handler {
			t.Helper()
			h, err := container.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return h
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{engines.Docker, engines.Podman} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			executortest.Run(t, func(t *testing.T) executortest.Env { return storage(config(t, e)) })
		})
	}
}
