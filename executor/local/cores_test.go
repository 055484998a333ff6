package local

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// allowed prints the CPUs that a task may use, and then waits to be stopped.
const allowed = "grep Cpus_allowed_list /proc/self/status; while :; do sleep 3600; done"

// cpusOf begins such a task and returns what it printed.
func (o *opened) cpusOf(t executor.Task) string {
	o.Helper()
	o.begin(t)
	return strings.TrimSpace(strings.TrimPrefix(o.firstLine(t), "Cpus_allowed_list:"))
}

// halt stops an attempt.
func (o *opened) halt(t executor.Task) {
	o.Helper()
	if err := o.Stop(o.Context(), t.ID, "done"); err != nil {
		o.Fatal(err)
	}
	o.end(t)
}

// milli is a task that asks for less or more than a core.
func milli(n uint32, milliCPU int64, script string) executor.Task {
	t := shell(n, script)
	t.Need.MilliCPU = milliCPU
	return t
}

// TestCoresHold: a task of one core with two busy threads has no more time of the
// processors than one has, whatever is set, and its supervisor serves one of more cores
// after it.
func TestCoresHold(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"by default": func(*Config) {}, "without cgroups": func(c *Config) { c.NoCgroups = true }, "by choice": func(c *Config) { c.Pin = true },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			change(&cfg)
			o, _ := adopted(t, cfg)
			task := shell(1, "")
			task.Command, task.Env = []string{os.Args[0]}, map[string]string{burnVar: "1s"}
			if r := o.run(task); r.ExitCode != 0 {
				t.Fatalf("%+v", r)
			}
			var used, lasted time.Duration
			if _, err := fmt.Sscan(o.output(task), (*int64)(&used), (*int64)(&lasted)); err != nil {
				t.Fatalf("%q: %v", o.output(task), err)
			}
			// A cgroup counts by periods of 100 ms: of a first and a last one that are cut, both may be used whole.
			if used > lasted*11/10+100*time.Millisecond {
				t.Errorf("a task of one core used %s of the processors in %s; %s", used, lasted, o.Status())
			}
			if o.groups.cpu && !cfg.Pin {
				return
			}
			if got := o.cpusOf(milli(2, 2000, allowed)); !strings.ContainsAny(got, ",-") &&
				len(attempts.AllowedCPUs()) > 1 {
				t.Errorf("a task of two cores has CPU %s", got)
			}
		})
	}
}

// burnVar has the test program be a task that keeps two threads busy for so long.
const burnVar = "BE_BUSY"

// burn prints the processor time that it has used, and how long it ran, in nanoseconds.
func burn(text string) int {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 2
	}
	runtime.GOMAXPROCS(2)
	before, err := usedCPU() // to start takes time as well, most of all with the race detector
	if err != nil {
		return 2
	}
	began := time.Now()
	done := make(chan struct{})
	for range 2 {
		go func() {
			for time.Since(began) < d {
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
	lasted := time.Since(began)
	after, err := usedCPU()
	if err != nil {
		return 2
	}
	//nolint:forbidigo // a task's output
	fmt.Println((after - before).Nanoseconds(), lasted.Nanoseconds())
	return 0
}

// usedCPU returns the processor time that this process has used.
func usedCPU() (time.Duration, error) {
	var use unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), err
}

// pinning has a handler without cgroups, so that pins hold what they must.
func pinning(t *testing.T) Config {
	cfg := config(t)
	cfg.NoCgroups = true
	cfg.Cores = len(attempts.AllowedCPUs())
	return cfg
}

// TestPins: tasks that run together have CPUs of their own and give them back; parts
// of a core share one.
func TestPins(t *testing.T) {
	cfg := pinning(t)
	o, _ := adopted(t, cfg)
	for round := range uint32(2) {
		seen := map[string]bool{}
		var tasks []executor.Task
		for i := range uint32(cfg.Cores) {
			task := shell(round*1000+i, allowed)
			cpu := o.cpusOf(task)
			if seen[cpu] || strings.ContainsAny(cpu, ",-") {
				t.Errorf("pinned to %q, others have %v", cpu, seen)
			}
			seen[cpu] = true
			tasks = append(tasks, task)
		}
		for _, task := range tasks {
			o.halt(task)
		}
	}
	one, other := milli(5001, 300, allowed), milli(5002, 700, allowed)
	if a, b := o.cpusOf(one), o.cpusOf(other); a != b {
		t.Errorf("three and seven tenths of a core have CPUs %s and %s", a, b)
	}
	o.halt(one)
	o.halt(other)
}

// TestPinsSurviveARestart: what an adopted attempt is pinned to is given to nobody else
// while another CPU is free.
func TestPinsSurviveARestart(t *testing.T) {
	cfg := pinning(t)
	o, _ := adopted(t, cfg)
	var old []executor.Task
	taken := map[string]bool{}
	for i := range uint32(cfg.Cores - 1) {
		task := shell(i, allowed)
		taken[o.cpusOf(task)] = true
		old = append(old, task)
	}
	o.Close()
	o, _ = adopted(t, cfg)
	next := shell(100, allowed)
	if cpu := o.cpusOf(next); taken[cpu] {
		t.Errorf("CPU %s is given out again; adopted attempts have %v", cpu, taken)
	}
	for _, task := range append(old, next) {
		o.halt(task)
	}
}

// TestPinsWithinTheBrokersOwn: a broker that may use fewer CPUs than the machine has, or
// than the site offers, pins to those; all tasks run all the same.
func TestPinsWithinTheBrokersOwn(t *testing.T) {
	all := attempts.AllowedCPUs()
	cfg := pinning(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last := all[len(all)-1]
	set := func(cpus ...int) {
		var s unix.CPUSet
		for _, cpu := range cpus {
			s.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &s); err != nil {
			t.Fatal(err)
		}
	}
	set(last)
	defer set(all...)
	cfg.Cores = 2
	o, _ := adopted(t, cfg)
	if s := o.Status(); !strings.Contains(s, "pinned to their cores, which are more than the 1 CPUs") {
		t.Errorf("status %q", s)
	}
	for n := range uint32(2) {
		if got := o.cpusOf(shell(n, allowed)); got != fmt.Sprint(last) {
			t.Errorf("pinned to %s, and the broker may use %d only", got, last)
		}
	}
}

// TestSupervisorsAreNotPinned: one that has begun a pinned task may use all CPUs again.
func TestSupervisorsAreNotPinned(t *testing.T) {
	cfg := pinning(t)
	o, _ := adopted(t, cfg)
	task := shell(1, allowed)
	o.cpusOf(task)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", o.slotOf(task).pid))
	if err != nil || len(threads) == 0 {
		t.Fatal(err)
	}
	want, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile(filepath.Join(thread, "status"))
		if err != nil {
			continue // it has ended
		}
		if got := cpusLine(b); got != cpusLine(want) {
			t.Errorf("thread %s: %s, the broker %s", filepath.Base(thread), got, cpusLine(want))
		}
	}
}

func cpusLine(status []byte) string {
	for l := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(l, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}

// fakeGroup makes what a kernel offers in a cgroup's folder.
func fakeGroup(t *testing.T, dir, controllers string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": "", "cpu.max": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCPUMaxIsFound: where a group has the controller of processor time, also if it has
// none of memory, it is used; where it has none, the status can say why.
func TestCPUMaxIsFound(t *testing.T) {
	for controllers, want := range map[string]cgroups{
		"cpu memory pids": {cpu: true, v2: true}, "cpu": {cpu: true}, "memory": {v2: true}, "": {},
	} {
		own := filepath.Join(t.TempDir(), "service", "broker")
		fakeGroup(t, own, controllers)
		fakeGroup(t, filepath.Dir(own), controllers)
		fakeGroup(t, filepath.Join(own, "name"), controllers)
		var c cgroups
		why := c.probeV2(own, "name")
		if c.cpu != want.cpu || c.v2 != want.v2 || c.kill == "" {
			t.Errorf("%q: found %+v", controllers, c)
		}
		if (len(why) == 0) != want.v2 || (c.whyCPU == "") != want.cpu {
			t.Errorf("%q: memory %v, processor time %q", controllers, why, c.whyCPU)
		}
	}
}

// TestCPUMaxIsWritten: a task's milli-cores, as a time of each period, never less than
// the kernel takes; and only when they change.
func TestCPUMaxIsWritten(t *testing.T) {
	dir := t.TempDir()
	fakeGroup(t, dir, "cpu")
	g := &group{fd: -1, kill: dir, cpu: true}
	for milli, want := range map[int64]string{1000: "100000 100000", 2500: "250000 100000", 250: "25000 100000", 0: "1000 100000", 3: "1000 100000"} {
		path := filepath.Join(dir, "cpu.max")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := g.setCores(milli); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%d milli-cores: %q, %v; want %q", milli, b, err, want)
		}
	}
	g.kill = filepath.Join(dir, "gone")
	if err := g.setCores(7000); err == nil {
		t.Error("a limit that cannot be set is no error")
	}
}
