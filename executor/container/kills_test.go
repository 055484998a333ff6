//go:build container

package container_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/container"
	"github.com/cloudshare/cloudshare/test/container/engines"
)

// kills of the broker in TestNothingIsLeft.
const kills = 100

// beBroker is the process that TestNothingIsLeft kills: it adopts what there is
// and starts tasks of its own as long as it lives.
func beBroker(dir string) {
	round, err := strconv.ParseUint(os.Getenv("ROUND"), 10, 32)
	if err != nil {
		panic(err)
	}
	h, err := container.Open(killConfig(dir, os.Getenv("ENGINE"), os.Getenv("PROGRAM")))
	if err != nil {
		panic(err)
	}
	if _, err = h.Adopt(context.Background()); err != nil {
		panic(err)
	}
	for n := uint32(0); ; {
		n++
		id := executor.ID{Job: "site-1.9", Task: n, Attempt: 1, Token: round}
		err = h.Start(context.Background(), executor.Task{
			ID: id, Owner: "site-1", Site: "site-2", Need: executor.Resources{MilliCPU: 1000}, Image: engines.Image,
			Command: []string{"/bin/sh", "-c", "echo " + id.String() + " >>" + dir + "/ran; sleep 0.2"},
		})
		if errors.Is(err, executor.ErrBusy) {
			<-h.Events()
		}
	}
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
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	e := engines.Start(t, engines.Docker)
	dir := t.TempDir()
	// More on a machine that is too busy for most of them to show anything.
	for round := 0; round < kills || round < 3*kills && len(whatRan(t, dir)) < kills/2; round++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BE_BROKER="+dir, "ENGINE="+e.Address, "PROGRAM="+program, "ROUND="+strconv.Itoa(round+1))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(100+random.IntN(700)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("round %d: the broker ended by itself: %v", round, err)
		}
	}
	r := open(t, killConfig(dir, e.Address, program))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.End(ctx); err != nil {
		t.Error(err)
	}
	states := r.reopen()
	awaitNone(t, e)
	ends := map[string]bool{}
	for _, st := range states {
		if st.Running {
			t.Errorf("%s has no end", st.ID)
		}
		ends[st.ID.String()] = true
	}
	ran := whatRan(t, dir)
	for name, times := range ran {
		if times != 1 || !ends[name] {
			t.Errorf("%s ran %d times, its end is known: %v", name, times, ends[name])
		}
	}
	t.Logf("%d attempts, %d of them ran", len(states), len(ran))
	if len(ran) < kills/2 {
		t.Error(fmt.Errorf("only %d tasks ran: the kills came too early to show anything", len(ran)))
	}
}

// whatRan is how often each task has run.
func whatRan(t *testing.T, dir string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for name := range strings.Lines(string(b)) {
		ran[strings.TrimSpace(name)]++
	}
	return ran
}
