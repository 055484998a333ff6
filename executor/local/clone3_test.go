package local

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuseClone3 filters this thread's system calls as systemd's RestrictNamespaces
// does. The thread must end with the test.
func refuseClone3(t *testing.T) {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS // its number, the first word
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load},
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Error(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0,
		0); err != nil {
		t.Error(err)
	}
}

// TestServiceRefusesClone3: under such a filter no group is used in which nothing
// could be started, and people hear why. Every task failed there: "function not
// implemented".
func TestServiceRefusesClone3(t *testing.T) {
	if !bornInGroups() {
		t.Fatal("this machine refuses clone3 by itself")
	}
	done := make(chan cgroups)
	go func() {
		runtime.LockOSThread() // and never unlocked: the filter ends with it
		refuseClone3(t)
		done <- findCgroups(t.TempDir())
	}()
	if c := <-done; c.kill != "" || c.v2 || c.mem == "" && !strings.Contains(c.why, "RestrictNamespaces") {
		t.Errorf("found %+v", c)
	}
}
