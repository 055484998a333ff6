//go:build kube

package kube_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/books"
	"github.com/cloudshare/cloudshare/executor/kube"
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
	kube.CaptureLogs(zerolog.Nop())
	h, err := kube.Open(killConfig(dir, os.Getenv("CLUSTER")))
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
			ID: id, Owner: "site-1", Site: "site-2", Machine: "kube/fake-1", Need: executor.Resources{MilliCPU: 1000},
			Image: "example.org/task:1", Command: []string{"run"}, Env: map[string]string{"FAKE_RUNS": "200ms"},
		})
		if errors.Is(err, executor.ErrBusy) {
			<-h.Events()
		}
	}
}

func killConfig(dir, cluster string) kube.Config {
	return kube.Config{
		Keeping: books.Keeping{Dir: filepath.Join(dir, "kube"), Site: "site-2"},
		Cluster: cluster, Namespace: "kills", LogWait: time.Millisecond,
	}
}

// TestNothingIsLeft: brokers are killed a hundred times at any moment while they
// start and adopt tasks. Then no Job and no pod is left, and each attempt has one
// end.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	if err := shared.Namespace(t.Context(), "kills"); err != nil {
		t.Fatal(err)
	}
	for round := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BE_BROKER="+dir, "CLUSTER="+shared.Kubeconfig(), "ROUND="+strconv.Itoa(round+1))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(100+random.IntN(500)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("round %d: the broker ended by itself: %v", round, err)
		}
	}
	r := open(t, shared, killConfig(dir, shared.Kubeconfig()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Handler.End(ctx); err != nil {
		t.Error(err)
	}
	states := r.reopen()
	r.noJobs()
	ran := 0
	for _, st := range states {
		if st.Running {
			t.Errorf("%s has no end", st.ID)
			continue
		}
		if !st.Ended.Started.IsZero() {
			ran++
		}
	}
	t.Logf("%d attempts, %d of them ran", len(states), ran)
	if ran < kills/2 {
		t.Errorf("only %d tasks ran: the kills came too early to show anything", ran)
	}
}
