package local

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/sandbox/outbound"
)

// stranger is a task of another site whose job asks for a network.
func stranger(n uint32, owner, script string) executor.Task {
	task := shell(n, script)
	task.Owner, task.Network, task.Command[0] = owner, true, "/bin/bash"
	return task
}

// outboundHandler is one that gives strangers the world, nil if it cannot here, and says so.
func outboundHandler(t *testing.T) *opened {
	t.Helper()
	return outboundHandlerWith(t, func(*Config) {})
}

func outboundHandlerWith(t *testing.T, change func(*Config)) *opened {
	t.Helper()
	cfg := config(t)
	change(&cfg)
	cfg.Contain, cfg.Foreign = ContainForeign, executor.NetworkOutbound
	o, _ := adopted(t, cfg)
	status, offers := o.Status(), o.Capacity()[0].Network
	if unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK) != nil {
		if offers != executor.NetworkNone || !strings.Contains(status, "outbound does not hold here") || !strings.Contains(status, "/dev/net/tun") {
			t.Errorf("offers %s without the device: %s", offers, status)
		}
		return nil
	}
	if offers != executor.NetworkOutbound || !strings.Contains(status, "with the world, but no private address") {
		t.Fatalf("offers %s: %s", offers, status)
	}
	return o
}

// said runs a task and returns what it wrote.
func (o *opened) said(task executor.Task) string {
	o.Helper()
	if r := o.run(task); r.Cause != executor.Exited {
		o.Fatalf("%q: %+v", task.Command, r)
	}
	return o.output(task)
}

// besideWorld returns a handler on a machine beside the world, as onMachine makes it, nil if this process is not there
// or no network can be had.
func besideWorld(t *testing.T, users ...int) *opened {
	t.Helper()
	return besideWorldWith(t, func(*Config) {}, users...)
}

func besideWorldWith(t *testing.T, change func(*Config), users ...int) *opened {
	t.Helper()
	if !onMachine(t, users...) {
		return nil
	}
	makeWorld(t)
	return outboundHandlerWith(t, change)
}

// TestOutbound: a stranger's task that asks reaches the world, by names as well, and nothing else: neither the machine,
// by any of its addresses, nor private ones, nor another task; it changes nothing of its network.
func TestOutbound(t *testing.T) {
	o := besideWorld(t, usersHere()...)
	if o == nil {
		return
	}
	if got := o.said(stranger(1, "site-1", "exec 3<>/dev/tcp/"+worldAddress+"/"+worldPort+" && echo reached >&3 && exec 4<&3 && "+
		"getent hosts far.example && cat /etc/resolv.conf")); got != worldAddress+"    far.example\nnameserver 10.0.2.3\n" {
		t.Errorf("the world: %q", got)
	}
	if got := o.said(stranger(2, "site-1", "exec 3<>/dev/udp/"+worldAddress+"/"+worldPort+"; echo there >&3; head -c 6 <&3")); got != "there\n" {
		t.Errorf("the world by datagrams: %q", got)
	}
	l, err := net.Listen("tcp", ":0") // what listens everywhere must not be reached either
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	flow, err := net.ListenPacket("udp4", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer flow.Close()
	script := ":"
	for _, a := range []string{
		"127.0.0.1/" + port, "127.1.2.3/" + port, machineAddress + "/" + port, machineSecond + "/" + port, "10.0.2.2/" + port,
		"10.0.2.3/" + port,
		"203.0.113.255/" + worldPort, worldPrivate + "/" + worldPort, "169.254.169.254/80", "192.168.1.1/" + port,
		"::1/" + port, "fe80::1/" + port, "100.64.0.1/" + port, "0.0.0.0/" + port, "224.0.0.1/" + port, "255.255.255.255/" + port,
	} {
		script += "; (exec 3<>/dev/tcp/" + a + ") 2>/dev/null && echo reached " + a
	}
	for _, a := range []string{
		worldPrivate + "/" + worldPort, machineAddress + "/" + port, machineSecond + "/" + port, "203.0.113.255/" + port,
	} {
		script += "; (exec 3<>/dev/udp/" + a + "; echo x >&3; read -t 2 x <&3) 2>/dev/null && echo answered " + a
	}
	if got := o.said(stranger(3, "site-1", script+"; echo end")); got != "end\n" {
		t.Errorf("reached: %s", got)
	}
	if got := hears(t, flow, port); got != "ours" {
		t.Errorf("the machine heard %q", got)
	}
	if got := o.said(stranger(6, "site-1", "for n in $(seq 200); do getent hosts $n.example; done | wc -l")); got != "200\n" {
		t.Errorf("of 200 names it found %s", got)
	}
	if got := o.said(stranger(4, "site-1", "for c in 'link set net0 down' 'route del default' 'addr add 10.0.2.9/24 dev net0'; do "+
		"ip $c 2>/dev/null && echo $c; done; ls /dev/net 2>/dev/null; echo end")); got != "end\n" {
		t.Errorf("changed its network: %s", got)
	}
	quiet := stranger(5, "site-1", "wc -l </proc/net/route")
	quiet.Network = false
	if got := o.said(quiet); got != "1\n" {
		t.Errorf("who does not ask has routes: %q", got)
	}
}

// hears returns what has come first to a port of this machine, where "ours" comes last.
func hears(t *testing.T, flow net.PacketConn, port string) string {
	t.Helper()
	c, err := net.Dial("udp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err = c.Write([]byte("ours")); err != nil {
		t.Fatal(err)
	}
	var said [64]byte
	n, _, err := flow.ReadFrom(said[:])
	if err != nil {
		t.Fatal(err)
	}
	return string(said[:n])
}

// TestOutboundCarriesMuch: a large stream arrives whole in both directions, and other tasks are not reached.
func TestOutboundCarriesMuch(t *testing.T) {
	o := besideWorld(t, os.Getuid())
	if o == nil {
		return
	}
	const python = `python3 - <<'E'
import socket
c = socket.create_connection(("` + worldAddress + `", ` + worldPort + `))
c.sendall(bytes(32 << 20))
c.shutdown(socket.SHUT_WR)
print(c.makefile().read(), end="")
E`
	if got, want := o.said(stranger(1, "site-1", python)), "world got "+strconv.Itoa(32<<20)+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const broken = `python3 - <<'E'
import socket
c = socket.create_connection(("` + worldAddress + `", ` + worldPort + `))
c.sendall(b"x")
c.shutdown(socket.SHUT_WR)
try:
    while c.recv(100): pass
    print("whole")
except ConnectionResetError:
    print("broken off")
E`
	if got := o.said(stranger(4, "site-1", broken)); got != "broken off\n" {
		t.Errorf("a connection that the world breaks off is %q", got)
	}
	long := stranger(2, "site-1", "python3 -m http.server 8000 --bind 0.0.0.0 2>/dev/null & "+
		"until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done; echo up; wait")
	o.begin(long)
	if got := o.firstLine(long); got != "up" {
		t.Fatalf("got %q", got)
	}
	if got := o.said(stranger(3, "site-3", "(exec 3<>/dev/tcp/10.0.2.100/8000) 2>/dev/null && echo reached; echo end")); got != "end\n" {
		t.Errorf("another task: %q", got)
	}
}

// TestStackEndsWithItsSandbox: nothing is left of a network when its sandbox has ended, also if that was killed, or the
// broker has gone; and a sandbox whose network has ended serves nobody any more.
func TestStackEndsWithItsSandbox(t *testing.T) {
	o := besideWorld(t, os.Getuid())
	if o == nil {
		return
	}
	task := stranger(1, "site-1", "exit 0")
	o.said(task)
	first := o.slotOf(task)
	if got := stacks(t); len(got) != 1 || got[0] != first.stack.Pid {
		t.Fatalf("stacks %v, want %d", got, first.stack.Pid)
	}
	if err := first.stack.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.stack.Wait(); err != nil { // its files are closed only when all of its threads have ended
		t.Fatal(err)
	}
	again := o.reachAfter(2)
	if err := unix.Kill(o.slotOf(again).pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitStacks(t, 0)
	o.reachAfter(9)
	awaitStacks(t, 1)
	if err := o.Close(); err != nil { // idle sandboxes end with their broker, and theirs with them
		t.Fatal(err)
	}
	awaitStacks(t, 0)
}

// reachAfter has tasks reach the world until one is begun, the first of which is given to what has just died.
func (o *opened) reachAfter(n uint32) executor.Task {
	o.Helper()
	for last := n + 5; ; n++ {
		task := stranger(n, "site-1", "(exec 3<>/dev/tcp/"+worldAddress+"/"+worldPort+") && echo reached")
		switch r := o.run(task); {
		case r.Cause == executor.Exited && o.output(task) == "reached\n":
			return task
		case r.Cause == executor.Exited || n == last:
			o.Fatalf("in a sandbox without its network, or none: %+v", r)
		}
	}
}

// awaitStacks waits until there are so many.
func awaitStacks(t *testing.T, want int) {
	t.Helper()
	if !eventually(patience, func() bool { return len(stacks(t)) == want }) {
		t.Fatalf("stacks %v, want %d", stacks(t), want)
	}
}

// stacks are the living processes of networks of this test's.
func stacks(t *testing.T) (list []int) {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids() {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		args, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if parts := strings.Split(string(args), "\x00"); len(parts) < 2 || parts[1] != outbound.Verb {
			continue
		}
		if ns, err := os.Readlink(filepath.Join(proc, "ns/net")); err == nil && ns != own {
			continue
		}
		list = append(list, pid)
	}
	return list
}
