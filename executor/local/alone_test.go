package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox"
)

// TestOutboundStackIsAlone: what a fault of a stack would let a task run in it sees no file but the name servers', and
// no process; it has no right and no namespace of the machine's but the network, and reads nothing of what it writes.
func TestOutboundStackIsAlone(t *testing.T) {
	o := besideWorld(t, usersHere()...)
	if o == nil {
		return
	}
	task := stranger(1, "site-1", "(exec 3<>/dev/tcp/"+worldAddress+"/"+worldPort+") && echo reached")
	if got := o.said(task); got != "reached\n" {
		t.Fatalf("the world: %q", got)
	}
	pid := o.slotOf(task).stack.Pid
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	for _, ns := range []string{"user", "mnt", "pid", "ipc", "uts", "net"} {
		theirs, err1 := os.Readlink(filepath.Join(proc, "ns", ns))
		ours, err2 := os.Readlink("/proc/self/ns/" + ns)
		if err1 != nil || err2 != nil || (theirs == ours) != (ns == "net") {
			t.Errorf("namespace %s: %s, ours is %s (%v, %v)", ns, theirs, ours, err1, err2)
		}
	}
	var seen []string
	root := filepath.Join(proc, "root")
	err := filepath.WalkDir(root+"/", func(path string, _ os.DirEntry, err error) error {
		seen = append(seen, strings.TrimPrefix(path, root))
		return err
	})
	if want := []string{"/", "/etc", "/etc/resolv.conf", "/proc"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("it sees %q, want %q (%v)", seen, want, err)
	}
	threads, err := filepath.Glob(filepath.Join(proc, "task/*/status"))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads %v: %v", threads, err)
	}
	lines := []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "Uid:\t" + strconv.Itoa(o.contain.plan.UID) + "\t"}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0)
	if errno == 0 { // else this program has C in it, unlike those that are delivered, and one of its threads has none
		lines = append(lines, "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapAmb:\t0000000000000000\n")
	}
	for _, path := range threads {
		status, err := os.ReadFile(path)
		for _, line := range lines {
			if err != nil || !strings.Contains(string(status), "\n"+line) {
				t.Errorf("%s: no line %q (%v)", path, line, err)
			}
		}
	}
	info, err := os.ReadFile(filepath.Join(proc, "fdinfo/2"))
	if err != nil || !writesOnly(string(info)) {
		t.Errorf("its log is open for reading: %q (%v)", info, err)
	}
}

// writesOnly reports whether a file's flags, which are octal, say so.
func writesOnly(info string) bool {
	_, flags, _ := strings.Cut(info, "flags:")
	n, err := strconv.ParseInt(strings.Fields(flags + " -")[0], 8, 64)
	return err == nil && n&unix.O_ACCMODE == unix.O_WRONLY
}

// TestStackEndsThatHangs: the end of an attempt waits for no stack that hangs, and none is left, whether the broker saw
// the end of its sandbox, or a later one did.
func TestStackEndsThatHangs(t *testing.T) {
	o := besideWorld(t, usersHere()...)
	if o == nil {
		return
	}
	for n := range 2 {
		task := stranger(uint32(n+1), "site-1", "echo up; sleep 60")
		o.begin(task)
		if got := o.firstLine(task); got != "up" {
			t.Fatalf("%q", got)
		}
		s := o.slotOf(task)
		pid := s.pid
		if err := unix.Kill(s.stack.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			cfg := o.cfg
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			o, _ = adopted(t, cfg)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if r := o.end(task); r.Cause != executor.Orphaned {
			t.Errorf("%+v, want an orphan", r)
		}
		awaitStacks(t, 0)
	}
}

// TestOutboundSaysWhyNot: what keeps a stack from its work is in the status, in its own words.
func TestOutboundSaysWhyNot(t *testing.T) {
	if !onMachine(t, os.Getuid()) {
		return
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_nonlocal_bind", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	cfg := config(t)
	cfg.Contain, cfg.Foreign = ContainForeign, executor.NetworkOutbound
	t.Cleanup(func() { awaitSupervisors(t, cfg.Dir) })
	o, _ := adopted(t, cfg)
	want := "ip_nonlocal_bind"
	if unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK) != nil {
		want = "/dev/net/tun"
	}
	if s := o.Status(); o.Capacity()[0].Network != executor.NetworkNone || !strings.Contains(s, want) {
		t.Errorf("offers %s: %s", o.Capacity()[0].Network, s)
	}
}

// TestOutboundNewNameServers: when the machine's name servers are named by another file, the next task has them.
func TestOutboundNewNameServers(t *testing.T) {
	o := besideWorld(t, os.Getuid())
	if o == nil {
		return
	}
	const servers = "nameserver " + worldGateway + "\n# later\n"
	var slots []*slot
	for n := range uint32(3) {
		task := stranger(n, "site-1", "getent hosts far.example >&2 && echo found")
		if got := o.said(task); got != "found\n" {
			t.Fatalf("task %d found %q", n, got)
		}
		slots = append(slots, o.slotOf(task))
		if n == 1 {
			err := errors.Join(os.WriteFile("later.conf", []byte(servers), 0o644),
				unix.Mount("later.conf", sandbox.ResolvConf, "", unix.MS_BIND, ""))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if slots[0] != slots[1] || slots[1] == slots[2] {
		t.Errorf("sandboxes %q, %q, %q: want a new one when the file is another", slots[0].name, slots[1].name, slots[2].name)
	}
	seen := filepath.Join("/proc", strconv.Itoa(slots[2].stack.Pid), "root", sandbox.ResolvConf)
	if got, err := os.ReadFile(seen); err != nil || string(got) != servers {
		t.Errorf("its stack sees %q (%v)", got, err)
	}
}

// TestOutboundFollowsNameServers: where a service keeps the file in a folder of its own, to which a link leads, its
// stack sees at once that it was replaced.
func TestOutboundFollowsNameServers(t *testing.T) {
	if !onMachine(t, os.Getuid()) {
		return
	}
	makeWorld(t)
	cover(t, "/etc")
	cover(t, "/run")
	const folder = "/run/systemd/resolve/"
	put := func(text string) error {
		return errors.Join(os.WriteFile(folder+"new", []byte(text), 0o644), os.Rename(folder+"new", folder+"stub-resolv.conf"))
	}
	err := errors.Join(os.MkdirAll(folder, 0o755), put("first"),
		os.Symlink("../run/systemd/resolve/stub-resolv.conf", sandbox.ResolvConf))
	if err != nil {
		t.Fatal(err)
	}
	o := outboundHandler(t)
	if o == nil {
		return
	}
	task := stranger(1, "site-1", "(exec 3<>/dev/tcp/"+worldAddress+"/"+worldPort+") && cat "+sandbox.ResolvConf)
	if got := o.said(task); got != "nameserver 10.0.2.3\n" {
		t.Errorf("a task sees %q", got)
	}
	if err = put("second"); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join("/proc", strconv.Itoa(o.slotOf(task).stack.Pid), "root", sandbox.ResolvConf)
	to, err := os.Readlink(link) // to be followed by its root, not ours
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(link)), to)); err != nil || string(got) != "second" {
		t.Errorf("its stack sees %q (%v)", got, err)
	}
}
