package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// dialAs dials as another user, which only root can.
func dialAs(path string, user int) (conn net.Conn, err error) {
	if user == os.Geteuid() {
		return net.Dial("unix", path)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		id := uintptr(user)
		if _, _, bad := syscall.RawSyscall(syscall.SYS_SETRESUID, id, id, id); bad != 0 {
			err = bad
			return
		}
		conn, err = net.Dial("unix", path)
	}()
	<-done
	return conn, err
}

// letIn reports whether a socket's owner's listener takes a connection of another user's process.
func letIn(t *testing.T, owner, user int) bool {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	// The rights of files are not what is tested.
	if err = errors.Join(os.Chmod(path, 0o666), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	own := &ownersOnly{Listener: l, owner: uint32(owner), log: zerolog.Nop()}
	accepted := make(chan bool)
	go func() {
		conn, err := own.Accept()
		if err == nil {
			_ = conn.Close()
		}
		accepted <- err == nil
	}()
	conn, err := dialAs(path, user)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err = conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("user %d at the socket of %d: %v", user, owner, err)
	}
	_ = own.Close()
	return <-accepted
}

// Of all who reach the operator's socket, its owner and root are let in: the kernel says who it is.
func TestForeignProcessesAtTheOperatorsSocket(t *testing.T) {
	me := os.Geteuid()
	if !letIn(t, me, me) {
		t.Error("the owner is kept out")
	}
	if me != 0 { // nobody can be another user here: another one is the owner
		if letIn(t, me+1, me) {
			t.Error("a stranger is let in")
		}
		return
	}
	const stranger = 65534
	if letIn(t, me, stranger) || letIn(t, stranger-1, stranger) {
		t.Error("a stranger is let in")
	}
	if !letIn(t, stranger, stranger) || !letIn(t, stranger, me) {
		t.Error("the owner or root is kept out")
	}
}
