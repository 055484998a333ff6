// Package solo runs single brokers for tests, each with a command line of its own;
// what fails ends the test.
package solo

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// Limit of one wait.
const Limit = 90 * time.Second

// Binary is this product, built once for all tests of a package by Main.
var Binary string

// Main is a package's TestMain.
func Main(m *testing.M) {
	os.Exit(testbed.BuildAndRun(func(binary string) int {
		Binary = binary
		return m.Run()
	}))
}

// Broker is one site, and the test that asks it.
type Broker struct {
	*testbed.Site
	*testing.T
	Peer  string // its address for other brokers
	Input string // what stands on the broker's stdin
	args  []string
	cmd   *exec.Cmd // nil = ended, or not started here
}

// New starts a site with free ports; its broker founds a federation, or joins one,
// as args say. It ends with the test.
func New(t *testing.T, name string, args ...string) *Broker {
	t.Helper()
	b := Prepare(t, name, args...)
	b.Start()
	return b
}

// Prepare is New without a start.
func Prepare(t *testing.T, name string, args ...string) *Broker {
	t.Helper()
	b := &Broker{T: t, Site: &testbed.Site{
		Name: name, URL: &url.URL{Scheme: "http", Host: FreeAddress(t)}, Dir: filepath.Join(t.TempDir(), name),
	}}
	b.Must(os.MkdirAll(b.Dir, 0o700))
	b.Peer = FreeAddress(t)
	b.args = append([]string{
		"broker", "--site", name, "--data-dir", b.Dir, "--http", b.URL.Host, "--peer", b.Peer, "--gossip", "127.0.0.1:0", "--if-empty", "--log-level", "debug",
	}, args...)
	t.Cleanup(func() {
		b.End(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s\n%s", name, b.LogTail(60))
		}
	})
	return b
}

// FreeAddress is [testbed.FreeAddress].
func FreeAddress(t *testing.T) string {
	t.Helper()
	addr, err := testbed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Start starts the broker, again after End, and waits until it is ready.
func (b *Broker) Start() {
	b.Helper()
	b.Launch()
	b.Await("ready", func() error { return b.Ready(b.Context()) })
}

// Launch starts the broker with more arguments, which count for this start only,
// and does not wait for it.
func (b *Broker) Launch(more ...string) {
	b.Helper()
	log, err := os.OpenFile(filepath.Join(b.Dir, "broker.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	b.Must(err)
	defer log.Close()
	b.cmd = exec.Command(Binary, slices.Concat(b.args, more)...)
	b.cmd.Stdin, b.cmd.Stdout, b.cmd.Stderr = strings.NewReader(b.Input), log, log
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	b.Must(b.cmd.Start())
}

// End ends the broker by that signal, unless it has ended.
func (b *Broker) End(sig syscall.Signal) {
	if b.cmd != nil {
		_ = b.cmd.Process.Signal(sig)
		_ = b.cmd.Wait()
		b.cmd = nil
	}
}

// Send sends a signal to the broker, which goes on or stands still.
func (b *Broker) Send(sig syscall.Signal) {
	b.Helper()
	b.Must(b.cmd.Process.Signal(sig))
}

// Must ends the test on an error, with the end of the broker's log.
func (b *Broker) Must(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%v\n%s", err, b.LogTail(20))
	}
}

// Await waits until there is no error any more.
func (b *Broker) Await(what string, cond func() error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), Limit)
	defer cancel()
	b.Must(testbed.Await(ctx, b.Site.Name+": "+what, cond))
}

// Invites has the site invite another, and the other electors agree: it returns the arguments by which that joins.
func (b *Broker) Invites(name string, electors ...*Broker) []string {
	b.Helper()
	var sites []*testbed.Site
	for _, e := range electors {
		sites = append(sites, e.Site)
	}
	ctx, cancel := context.WithTimeout(b.Context(), Limit)
	defer cancel()
	args, err := b.InviteFile(ctx, b.TempDir(), name, sites...)
	b.Must(err)
	return args
}
