//go:build container

package container_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
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
		Keeping: books.Keeping{Dir: filepath.Join(dir, "container"), Site: "site-2", Grace: 300 * time.Millisecond},
		Engine:  engine, Cores: 4, Network: "none", Executable: program, Mounts: []string{dir + ":" + dir},
	}
}

// TestNothingIsLeft: brokers are killed a hundred times at any moment while they
// start and adopt tasks. Then no container is left, no attempt ran twice, and
// each that ran has an end.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	e := engines.Start(t, engines.Docker)
	dir := t.TempDir()
	env := []string{"BE_BROKER=" + dir, "ENGINE=" + e.Address, "PROGRAM=" + program}
	executortest.KillBrokers(t, 700*time.Millisecond, env, func(killed int) bool {
		// More on a machine that is too busy for most of them to show anything.
		return killed < executortest.Kills || killed < 3*executortest.Kills && len(executortest.Ran(t, dir)) < executortest.Kills/2
	})
	r := open(t, killConfig(dir, e.Address, program))
	r.EndAll()
	states := r.Open()
	awaitNone(t, e)
	ends := map[string]bool{}
	for _, st := range states {
		if st.Running {
			t.Errorf("%s has no end", st.ID)
		}
		ends[st.ID.String()] = true
	}
	ran := executortest.Ran(t, dir)
	for name, times := range ran {
		if times != 1 || !ends[name] {
			t.Errorf("%s ran %d times, its end is known: %v", name, times, ends[name])
		}
	}
	t.Logf("%d attempts, %d of them ran", len(states), len(ran))
	if len(ran) < executortest.Kills/2 {
		t.Errorf("only %d tasks ran: the kills came too early to show anything", len(ran))
	}
}
