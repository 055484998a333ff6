package local

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// Addresses of a machine of its own, and of the world, which has private ones as well.
const (
	machineAddress = "203.0.113.2"
	machineSecond  = "203.0.113.3" // to which the kernel sends from the first one
	worldGateway   = "203.0.113.1" // and the machine's name server
	worldAddress   = "198.51.100.7"
	worldPrivate   = "10.9.9.9"
	worldPort      = "7007"
)

// machineVar says in a process of its own network that it is a machine, and by which user it then runs.
const machineVar = "BE_MACHINE_AS"

// onMachine runs the calling test again in a network, and mounts, of its own: a machine with one wire. It reports
// whether this is that process. Each user is the broker's once.
func onMachine(t *testing.T, users ...int) bool {
	t.Helper()
	if os.Getenv(machineVar) != "" {
		return true
	}
	for _, uid := range users {
		t.Run(strconv.Itoa(uid), func(t *testing.T) {
			dir := t.TempDir() // any user's
			if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(t.Name(), "/")
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run", "^"+name+"$")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), machineVar+"="+strconv.Itoa(uid), "TMPDIR="+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
			if os.Getuid() != 0 {
				cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getgid(), Size: 1}}
				cmd.SysProcAttr.AmbientCaps = []uintptr{
					unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE,
				}
			}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	return false
}

// usersHere are those by which a test can run: root's as a plain user, too.
func usersHere() []int {
	if uid := os.Getuid(); uid != 0 {
		return []int{uid}
	}
	return []int{0, plainUser}
}

// plainUser owns nothing.
const plainUser = 65432

// makeWorld makes the machine's wire and what is behind it, and becomes the user. What the world has of servers runs in
// this process, on sockets of the other network.
func makeWorld(t *testing.T) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	resolv := "resolv.conf" // the folder of the test belongs to the user, once there is one
	must(os.WriteFile(resolv, []byte("nameserver "+worldGateway+"\n"), 0o644))
	must(unix.Mount(resolv, "/etc/resolv.conf", "", unix.MS_BIND, ""))
	inWorld(t, func() error {
		return ip("link add wire type veth peer name machine netns " + strconv.Itoa(os.Getpid()))
	})
	must(ip("link set lo up", "addr add "+machineAddress+"/24 dev machine",
		"addr add "+machineSecond+"/24 dev machine", "link set machine up",
		"route add default via "+worldGateway))
	uid, err := strconv.Atoi(os.Getenv(machineVar))
	must(err)
	if os.Getuid() == 0 && uid != 0 {
		shareDevice(t)
		must(errors.Join(syscall.Setgroups(nil), syscall.Setresgid(uid, uid, uid), syscall.Setresuid(uid, uid, uid)))
		must(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) // as one that was never root
	}
}

// shareDevice lets every user make interfaces, as udev does.
func shareDevice(t *testing.T) {
	t.Helper()
	const node = "tun"
	const major, minor = 10, 200
	err := errors.Join(unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))), os.Chmod(node, 0o666),
		unix.Mount(node, "/dev/net/tun", "", unix.MS_BIND, ""))
	if err != nil {
		t.Fatal(err)
	}
}

// inWorld makes the other network with make, gives it addresses, and serves there.
func inWorld(t *testing.T, link func() error) {
	t.Helper()
	failed := make(chan error)
	go otherThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = link()
		}
		if err == nil {
			err = ip("link set lo up", "addr add "+worldGateway+"/24 dev wire", "link set wire up",
				"addr add "+worldAddress+"/32 dev lo", "addr add "+worldPrivate+"/32 dev lo")
		}
		if err == nil {
			err = serveWorld(t)
		}
		failed <- err
	})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// otherThread runs f on a thread of its own, which is not the process's first, and never used again.
func otherThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		done := make(chan struct{})
		go otherThread(func() { f(); close(done) })
		<-done
		return
	}
	f()
}

// serveWorld listens everywhere in this thread's network: who connects is told by whom, and datagrams come back.
func serveWorld(t *testing.T) error {
	stream, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "0.0.0.0:"+worldPort)
	if err != nil {
		return err
	}
	t.Cleanup(func() { stream.Close() })
	echo := func(b []byte) []byte { return b }
	// One each, so that answers come from where they are awaited.
	for address, become := range map[string]func([]byte) []byte{
		worldAddress + ":" + worldPort: echo, worldPrivate + ":" + worldPort: echo, worldGateway + ":53": answerName,
	} {
		flow, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { flow.Close() })
		go answer(flow, become)
	}
	go func() {
		for {
			c, err := stream.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n, _ := io.Copy(io.Discard, c)
				_, _ = fmt.Fprintf(c, "world got %d\n", n)
				if n == 1 { // what is sent so is broken off
					_ = c.(*net.TCPConn).SetLinger(0)
				}
			}()
		}
	}()
	return nil
}

// answer sends back what become makes of each datagram.
func answer(c net.PacketConn, become func([]byte) []byte) {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(become(buf[:n]), from)
	}
}

// answerName says that every name has the world's address.
func answerName(question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(worldAddress).To4())},
		}}
	}
	b, _ := m.Pack()
	return b
}

// ip runs ip(8).
func ip(lines ...string) error {
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s (of iproute2): %w: %s", line, err, out)
		}
	}
	return nil
}
