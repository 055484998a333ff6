package executortest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Hostile are tasks that attack the machine, the broker and each other: a handler that
// runs strangers' work contains them. why names those that it does not, and why not.
func Hostile(t *testing.T, open Factory, why map[string]string) {
	for _, c := range []struct {
		name string
		test func(r *Rig)
	}{
		{"KillAll", hostileKillAll},
		{"EndTheInit", hostileInit},
		{"ForkChain", hostileChain},
		{"SeeOthers", hostileOthers},
		{"LeaveThings", hostileLeavings},
		{"BecomeRoot", hostileRoot},
		{"BeRoot", hostileUser},
		{"ReachLoopback", hostileLoopback},
		{"MakeDevices", hostileDevices},
		{"ReadTheInit", hostileInside},
		{"TermTheInit", hostileTerm},
		{"SlowTheInit", attack("renice", "reniceall", "idle", "attribute", "pin", "ionice", "limit")},
		{"TraceTheInit", attack("trace", "read", "file")},
		{"ForkBomb", hostileBomb},
		{"ForgeTheEnd", hostileForge},
		{"ManyFiles", hostileFiles},
		{"FloodOutput", hostileFlood},
		{"FillTheDisk", hostileFill},
		{"SetUserID", hostileSuid},
		{"Keyrings", attack("key", "keyring")},
		{"IOUring", attack("uring")},
		{"KernelDoors", attack("bpf", "perf", "fault", "module", "log", "clock")},
		{"Namespaces", attack("mount", "unshare", "userspace", "clone", "chroot", "device")},
		{"HoldOutput", attack("lease")},
		{"Sockets", attack("vsock", "alg", "packet", "raw")},
		{"MoveCgroup", attack("cgroup")},
		{"ReachEngine", attack("engine")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why[c.name] != "" {
				t.Skipf("not contained here: %s", why[c.name])
			}
			r := NewRig(t, open(t))
			defer r.EndAll()
			c.test(r)
		})
	}
}

// stranger makes a task of another site's that is a script.
func (r *Rig) stranger(script string) executor.Task {
	t := r.shell(script)
	t.Owner = "site-9"
	t.Fence = executor.Boottime() + int64(time.Hour)
	return t
}

// said runs a task to its clean end and returns what it wrote.
func (r *Rig) said(t executor.Task) string {
	r.Helper()
	res := r.run(t)
	out := r.Written(t.ID, "stdout")
	if res.Cause != executor.Exited || res.ExitCode != 0 {
		r.Fatalf("got %+v, want a clean exit; it wrote %q and %q", res, out, r.Written(t.ID, "stderr"))
	}
	return out
}

// hostileKillAll: a task that kills everything it can reaches nobody else's task, and
// not whoever watches it.
func hostileKillAll(r *Rig) {
	other := r.Begin(r.stranger(forever))
	r.AwaitRunning(other)
	t := r.stranger("trap '' TERM; kill -TERM -1; kill -9 -1; sleep 1; exit 0")
	if res := r.run(t); res.Cause != executor.Exited {
		r.Errorf("got %+v, want it to have ended by itself", res)
	}
	r.Must(r.Stop(r.Context(), other, "test"))
	if res := r.AwaitEnd(other); res.Cause != executor.Stopped {
		r.Errorf("the other task: got %+v, want it alive until it was stopped", res)
	}
}

// hostileInit: a task cannot end, stop or hold up the process that watches it, and so
// gets nothing for free.
func hostileInit(r *Rig) {
	t := r.stranger(`for sig in KILL STOP HUP QUIT ILL ABRT BUS FPE SEGV SYS USR1 PIPE; do
echo $sig; kill -$sig $PPID; kill -$sig 1
for i in 1 2 3; do /bin/kill -q 1 -s $sig 1; done 2>/dev/null # as sigqueue sends it
sleep 0.1; done; exit 7`)
	if res := r.run(t); res.Cause != executor.Exited || res.ExitCode != 7 {
		r.Errorf("got %+v after %q, want exit code 7", res, r.Written(t.ID, "stdout"))
	}
	t = r.stranger("kill -STOP $PPID; kill -STOP 1; " + forever)
	t.Timeout = time.Second
	if res := r.run(t); res.Cause != executor.TimedOut {
		r.Errorf("got %+v, want it ended at its timeout", res)
	}
}

// hostileChain: processes that fork a successor and end, faster than anybody lists them,
// are dead when the attempt is. Its shell waits without a fork of its own. It may end before its timeout all the same:
// those that have ended count against its bound of processes until they are reaped, and a shell that cannot fork ends.
func hostileChain(r *Rig) {
	fifo := r.fifo()
	gone := r.holders(fifo)
	t := r.stranger("exec 9>" + fifo + `; c() { trap '' TERM; (c) & exit; }; for i in 1 2 3 4 5 6 7 8; do (c) & done; exec sleep 3600`)
	t.Timeout = time.Second
	res := r.run(t)
	if res.Cause != executor.TimedOut && (res.Cause != executor.Exited || res.ExitCode == 0) {
		r.Errorf("got %+v, want it ended at its timeout, or by a fork that it may not have", res)
	}
	r.awaitGone(gone)
}

// awaitGone waits for the last of an attempt's processes, after its end was told.
func (r *Rig) awaitGone(gone <-chan struct{}) {
	r.Helper()
	select {
	case <-gone:
	case <-time.After(r.env.Patience):
		r.Errorf("processes of an ended attempt live after %s", r.env.Patience)
	}
}

// hostileOthers: a task sees no process but its own.
func hostileOthers(r *Rig) {
	other := r.Begin(r.stranger("exec sleep 3333"))
	r.AwaitRunning(other)
	list := "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null"
	if out := r.said(r.stranger(list)); strings.Contains(out, "3333") || len(strings.Fields(out)) == 0 {
		r.Errorf("a task sees %q", out)
	}
}

// hostileLeavings: what a task leaves, the next one does not find.
func hostileLeavings(r *Rig) {
	places := "/tmp /var/tmp /dev/shm ."
	set := "for d in /tmp .; do setfattr -n user.secret -v x $d 2>/dev/null; chmod 500 $d; done; :"
	r.said(r.stranger(set))
	leave := "for d in " + places + `; do mkdir -p $d/deep/er; echo x >$d/left; echo x >$d/deep/er/left; chmod 0 $d/deep; done; chmod 0 .`
	r.said(r.stranger(leave))
	find := "for d in " + places + "; do ls -A $d 2>/dev/null | grep -E '^(left|deep)$'; done; :"
	if out := r.said(r.stranger(find)); out != "" {
		r.Errorf("the next task finds %q", out)
	}
}

// hostileRoot: a task gains no right: not by a set-user-id program, nor by a user
// namespace of its own, nor does it have a capability.
func hostileRoot(r *Rig) {
	out := r.said(r.stranger(`grep -E '^(CapEff|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status
unshare -Ur true 2>/dev/null && echo namespace; unshare -m true 2>/dev/null && echo mounts; :`))
	for _, want := range []string{
		"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapInh:\t0000000000000000",
		"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(out, want+"\n") {
			r.Errorf("no %q in %q", want, out)
		}
	}
	if strings.Contains(out, "namespace") || strings.Contains(out, "mounts") {
		r.Errorf("a task gained a right: %q", out)
	}
}

// hostileUser: a task is not root, even without its rights.
func hostileUser(r *Rig) {
	if out := r.said(r.stranger("id -u; id -g")); strings.Contains("\n"+out, "\n0\n") {
		r.Errorf("a task is user and group %q", out)
	}
}

// hostileLoopback: a task does not reach what listens on the machine, as its broker does.
func hostileLoopback(r *Rig) {
	l, err := new(net.ListenConfig).Listen(r.Context(), "tcp", "127.0.0.1:0")
	r.Must(err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	r.Must(err)
	out := r.said(r.stranger("bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + "' 2>/dev/null && echo reached; cat /proc/net/route | wc -l"))
	if out != "1\n" {
		r.Errorf("got %q, want nothing reached and no route", out)
	}
}

// hostileDevices: a task makes no device, and mounts nothing.
func hostileDevices(r *Rig) {
	out := r.said(r.stranger(`mknod disk b 254 0 2>/dev/null && echo node; mount -t tmpfs none /tmp 2>/dev/null && echo mounted
touch /usr/x /etc/x /x /dev/x /proc/sys/kernel/x 2>/dev/null && echo wrote; for d in /home /var/lib /run; do ls $d 2>/dev/null; done; echo end`))
	if out != "end\n" {
		r.Errorf("got %q", out)
	}
}

// hostileInside: a task does not look into whoever watches it, nor holds a file of it.
func hostileInside(r *Rig) {
	out := r.said(r.stranger(`cat /proc/1/environ /proc/1/mem 2>/dev/null; for d in cwd root; do ls /proc/1/$d/ 2>/dev/null; done; readlink /proc/1/fd/* 2>/dev/null
for f in /proc/self/fd/*; do readlink $f; done | grep -v -E '^/dev/null$|/proc/|^pipe:'; :`))
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "/stdout\n") && !strings.HasSuffix(line, "/stderr\n") {
			r.Errorf("a task has %q", line)
		}
	}
}
