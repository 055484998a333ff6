//go:build container

package container_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/executor/executortest"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// beBroker is the process that TestNothingIsLeft kills.
func beBroker(dir string) {
	h, err := container.Open(killConfig(dir, os.Getenv("ENGINE"), os.Getenv("PROGRAM")))
	if err != nil {
		panic(err)
	}
	executortest.BeBroker(h, func(id executor.ID) executor.Task {
		return executor.Task{
			Owner: "site-1", Site: "site-2", Need: executor.Resources{MilliCPU: 1000}, Image: engines.Image,
			Command: []string{"/bin/sh", "-c", executortest.Mark(dir, id) + "; sleep 0.2"},
		}
	})
}

func killConfig(dir, engine, program string) container.Config {
	return container.Config{
		Keeping: attempts.Keeping{Dir: filepath.Join(dir, "container"), Site: "site-2", Grace: 300 * time.Millisecond},
		Engine:  engine, Cores: 4, Network: "none", Executable: program, Mounts: []string{dir + ":" + dir},
	}
}

// TestNothingIsLeft: brokers are killed again and again at any moment while they
// start and adopt tasks. Then no container is left, no attempt ran twice, and
// each that ran has an end.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker)
	dir := t.TempDir()
	executortest.KillBrokers(t, dir, "BE_BROKER="+dir, "ENGINE="+e.Address, "PROGRAM="+program)
	r := open(t, killConfig(dir, e.Address, program))
	r.EndAll()
	states := r.Open()
	awaitNone(t, e)
	executortest.RanOnce(t, dir, states, func(*executor.Result) bool { return true })
}
