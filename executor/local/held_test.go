package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// guestVar is set where cgroups of v2 must hold: in the guest of make test-cgroup.
const guestVar = "CLOUDSHARE_CGROUP_GUEST"

// eat is a script that wants 100 MB of memory at once.
const eat = "dd if=/dev/zero of=/dev/null bs=100M count=1 2>/dev/null"

// eachWay runs a test for tasks outside of sandboxes and inside, with a bound of processes there.
func eachWay(t *testing.T, test func(t *testing.T, o *opened)) {
	for name, whom := range map[string]Whom{"outside": ContainNobody, "in a sandbox": ContainAll} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			cfg.Contain, cfg.Sandbox.Processes = whom, 48
			o, _ := adopted(t, cfg)
			if os.Getenv(guestVar) != "" && !(o.groups.v2 && o.groups.cpu && o.groups.pids && o.contain.why == nil) {
				t.Fatalf("not all holds in a guest made for that: %s", o.Status())
			}
			test(t, o)
		})
	}
}

// TestMemoryIsHeld: a task that takes more than it asked for is killed for that, and its end
// says so; the next one of the same supervisor is not.
func TestMemoryIsHeld(t *testing.T) {
	eachWay(t, func(t *testing.T, o *opened) {
		if o.groups.mem == "" {
			if !strings.Contains(o.Status(), "not enforced: ") {
				t.Errorf("status %q does not say why memory is not limited", o.Status())
			}
			return
		}
		task := shell(1, eat)
		task.Need.MemMiB = 32
		if r := o.run(task); r.Cause != executor.Exited || r.ExitCode == 0 || !strings.Contains(r.Detail, "out of memory (limit 32Mi)") {
			t.Errorf("got %+v, want it out of memory", r)
		}
		roomy := shell(2, eat)
		roomy.Need.MemMiB = 256
		if r := o.run(roomy); r.Cause != executor.Exited || r.ExitCode != 0 {
			t.Errorf("with more memory: got %+v, want a clean exit", r)
		}
		if o.slotOf(task) != o.slotOf(roomy) {
			t.Error("a kill for memory has cost the supervisor")
		}
	})
}

// TestShareOfMemory: a task in a sandbox that asks for no memory has a share by its cores; one
// outside has no limit, as ever.
func TestShareOfMemory(t *testing.T) {
	for whom, want := range map[Whom]string{ContainNobody: "", ContainAll: "limit 64Mi, a share by its cores"} {
		cfg := config(t)
		cfg.Contain, cfg.MemMiB, cfg.Cores = whom, 128, 2
		o, _ := adopted(t, cfg)
		if o.groups.mem == "" {
			continue // the status says why, as TestMemoryIsHeld looks up
		}
		if r := o.run(shell(1, eat)); !strings.Contains(r.Detail, want) || (r.ExitCode == 0) != (want == "") {
			t.Errorf("got %+v, want %q", r, want)
		}
	}
}

// TestProcessorTimeIsHeld: a task of half a core that is always busy, twice, has half a core.
func TestProcessorTimeIsHeld(t *testing.T) {
	eachWay(t, func(t *testing.T, o *opened) {
		if !o.groups.cpu {
			return // pins hold whole cores then: TestCoresHold
		}
		task := milli(1, 500, "while :; do :; done & while :; do :; done & sleep 2; echo here; sleep 3600")
		began := time.Now()
		o.begin(task)
		o.firstLine(task)
		group := filepath.Join(o.groups.kill, o.slotOf(task).name)
		if o.slotOf(task).contained {
			group = filepath.Join(group, taskGroup)
		}
		used := time.Duration(counted(t, group, "usage_usec")) * time.Microsecond
		lasted := time.Since(began)
		if most := lasted/2*11/10 + 100*time.Millisecond; used > most {
			t.Errorf("used %s of the processors in %s, want %s at most", used, lasted, most)
		}
		if counted(t, group, "nr_throttled") == 0 {
			t.Error("it was never held up")
		}
		o.halt(task)
	})
}

// counted returns a number that a group counts of its processor time.
func counted(t *testing.T, group, name string) (n int64) {
	t.Helper()
	err := eachLine(filepath.Join(group, "cpu.stat"), func(l string) {
		if v, ok := strings.CutPrefix(l, name+" "); ok {
			n, _ = strconv.ParseInt(v, 10, 64)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestProcessesAreHeld: a task in a sandbox cannot have more processes than its bound, and a
// task that is refused them harms nobody: the next one has all again.
func TestProcessesAreHeld(t *testing.T) {
	cfg := config(t)
	cfg.Contain, cfg.Sandbox.Processes = ContainAll, 48
	o, _ := adopted(t, cfg)
	bomb := "i=0; while [ $i -lt %d ]; do sleep 300 & i=$((i+1)); done; exit 0"
	many, few := shell(1, fmt.Sprintf(bomb, 100)), shell(2, fmt.Sprintf(bomb, 20))
	many.Timeout = 5 * time.Second // some shells try again for long
	if r := o.run(many); r.ExitCode == 0 {
		t.Errorf("100 processes: got %+v, want them refused", r)
	}
	if r := o.run(few); r.Cause != executor.Exited || r.ExitCode != 0 {
		t.Errorf("20 processes: got %+v, want a clean exit", r)
	}
}

// TestGroupsGo: supervisors leave no group behind.
func TestGroupsGo(t *testing.T) {
	eachWay(t, func(t *testing.T, o *opened) {
		o.run(shell(1, "exit 0"))
		bases := o.groups.bases()
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		awaitSupervisors(t, o.cfg.Dir)
		again := open(t, o.cfg)
		if _, err := again.Adopt(t.Context()); err != nil { // sweeps
			t.Fatal(err)
		}
		for _, base := range bases {
			left, err := filepath.Glob(filepath.Join(base, o.slotOf(shell(1, "")).name))
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		}
	})
}
