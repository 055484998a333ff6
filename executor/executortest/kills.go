package executortest

import (
	"context"
	"errors"
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
)

// killsVar is the variable that says how many brokers are killed; without it fewKills.
const (
	killsVar = "CLOUDSHARE_KILLS"
	fewKills = 20
)

// kills of brokers that show what is left behind by them, if at least half as many
// tasks run meanwhile: on a machine that is too busy for that there are up to thrice
// as many.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv(killsVar)
	if text == "" {
		return fewKills
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of kills: name one above 0", killsVar, text)
	}
	return n
}

// roundVar is the variable that tells a broker which one it is.
const roundVar = "BROKER_ROUND"

// KillBrokers runs this very program with these variables, which make it call
// BeBroker, and kills it at any moment between 100 and 800 ms; again and again. Its
// tasks leave their Mark in dir. Where none came to run, the next broker has longer.
func KillBrokers(t *testing.T, dir string, env ...string) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	longer, before, kills := 1, 0, kills(t)
	for round := 0; round < kills || round < 3*kills && before < kills/2; round++ {
		killBroker(t, time.Duration(longer*(100+random.IntN(700)))*time.Millisecond,
			append(env, roundVar+"="+strconv.Itoa(round+1)))
		now := len(ran(t, dir))
		longer = min(longer+1, 8)
		if now > before {
			longer = 1
		}
		before = now
	}
}

// killBroker runs this program and kills it after a while.
func killBroker(t *testing.T, after time.Duration, env []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-time.After(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v: the broker ended by itself: %v", env, err)
	}
}

// BeBroker is what a process does that KillBrokers kills: it adopts what there is
// and starts tasks of its own as long as it lives. task fills in all but the id.
func BeBroker(h executor.Handler, task func(executor.ID) executor.Task) {
	round, err := strconv.ParseUint(os.Getenv(roundVar), 10, 32)
	if err != nil {
		panic(err)
	}
	if _, err = h.Adopt(context.Background()); err != nil {
		panic(err)
	}
	for n := uint32(1); ; n++ {
		id := executor.ID{Job: "site-1.9", Task: n, Attempt: 1, Token: round}
		t := task(id)
		t.ID = id
		if err = h.Start(context.Background(), t); errors.Is(err, executor.ErrBusy) {
			<-h.Events()
		}
	}
}

// ranFile is where tasks note that they run.
const ranFile = "ran"

// Mark returns the shell command by which a task notes in a folder that it runs.
func Mark(dir string, id executor.ID) string {
	return "echo " + id.String() + " >>" + filepath.Join(dir, ranFile)
}

// RanOnce checks what KillBrokers has left, by the states of all attempts after they were
// ended: each that ran did so once, and has an end that says so.
func RanOnce(t *testing.T, dir string, states []executor.State, says func(*executor.Result) bool) {
	t.Helper()
	said := map[string]bool{}
	for _, st := range states {
		if st.Running {
			t.Errorf("%s has no end", st.ID)
			continue
		}
		said[st.ID.String()] = says(st.Ended)
	}
	marks := ran(t, dir)
	for name, times := range marks {
		if times != 1 || !said[name] {
			t.Errorf("%s ran %d times, its end says so: %v", name, times, said[name])
		}
	}
	t.Logf("%d attempts, %d of them ran", len(states), len(marks))
	if len(marks) < kills(t)/2 {
		t.Errorf("only %d tasks ran: the kills came too early to show anything", len(marks))
	}
}

// ran returns how often each task has noted in a folder that it runs, by its name.
func ran(t *testing.T, dir string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ranFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	times := map[string]int{}
	for name := range strings.Lines(string(b)) {
		times[strings.TrimSpace(name)]++
	}
	return times
}
