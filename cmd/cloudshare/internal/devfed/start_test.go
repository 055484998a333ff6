package devfed

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A broker that still serves is refused; one that is ending (it has left, or
// was told to stop) is waited for; one left by a killed dev is named.
func TestStartWaitsForAnEndingBroker(t *testing.T) {
	dir := t.TempDir()
	s := &devSite{Name: "site-1", Dir: dir}
	broker := exec.Command("sh", "-c", "read line", filepath.Join(dir, "config.yaml"))
	stdin, err := broker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- broker.Wait() }()
	if err := os.WriteFile(s.file("broker.pid"), []byte(strconv.Itoa(broker.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	// The kernel tells the arguments of a program a moment after it has begun.
	if !await(10*time.Second, func() bool { return s.pid() != 0 }) {
		t.Fatalf("process %d is not seen as the broker", broker.Process.Pid)
	}
	api, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.HTTP = api.Addr().String()

	if err := s.awaitEnd(t.Context()); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Fatalf("a broker that serves: %v, want that it runs already", err)
	}
	if err := freePorts([]*devSite{s}); err == nil || !strings.Contains(err.Error(), "its dev was killed?") {
		t.Fatalf("a broker without its dev: %v, want how to end it", err)
	}

	_ = api.Close()
	waited := make(chan error, 1)
	go func() { waited <- s.awaitEnd(t.Context()) }()
	_ = stdin.Close()
	if err := <-ended; err != nil {
		t.Log("broker ended:", err)
	}
	if err := <-waited; err != nil {
		t.Fatalf("a broker that has ended: %v", err)
	}
}
