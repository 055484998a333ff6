package guard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// lastWords names the file that stands for a container's last words.
const lastWords = "BE_GUARD_TELL"

func TestMain(m *testing.M) {
	if to := os.Getenv(lastWords); to != "" {
		os.Exit(beGuard(to))
	}
	os.Exit(m.Run())
}

// beGuard is the first process of a namespace, as in a container.
func beGuard(to string) int {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("proc", "/proc", "proc", 0, "")
	}
	if err != nil || os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "not a namespace of its own:", err)
		return 99
	}
	t := guardTask(os.Args[1:], os.Environ())
	if err := os.WriteFile(to, t.encode(), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return t.ExitCode
}

// patience bounds every wait of the tests.
const patience = 30 * time.Second

// pod is a guard with its task, and the handler that it asks.
type pod struct {
	*testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader // of the task; it ends when nobody is left
	tell   string
	orders Orders

	mu     sync.Mutex
	answer Answer
	until  int64 // what it was told last, at most
	asked  chan struct{}
	server *httptest.Server
}

// begin runs a script in a pod that is told first for as long as it may live.
func begin(t *testing.T, first Answer, change func(*Orders), script string) *pod {
	t.Helper()
	p := &pod{T: t, answer: first, asked: make(chan struct{}, 1), tell: filepath.Join(t.TempDir(), "told")}
	key := []byte("key")
	p.server = httptest.NewServer(NewServer(key, p.reply, nil).Handler)
	t.Cleanup(p.server.Close)
	p.orders = Orders{
		URL: p.server.URL, Attempt: "site-1.7-0-1-9", Secret: SecretOf(key, "site-1.7-0-1-9"), Grace: 300 * time.Millisecond, Patience: 2 * time.Second,
	}
	if change != nil {
		change(&p.orders)
	}
	text, err := p.orders.Encode()
	p.must(err)
	p.cmd = exec.Command(os.Args[0], "/bin/sh", "-c", script)
	p.cmd.Env = append(os.Environ(), lastWords+"="+p.tell, Variable+"="+text)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Getuid() != 0 {
		p.cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		p.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	r, w, err := os.Pipe()
	p.must(err)
	t.Cleanup(func() { r.Close() })
	p.cmd.Stdout, p.cmd.Stderr, p.out = w, os.Stderr, bufio.NewReader(r)
	p.must(p.cmd.Start())
	p.must(w.Close())
	return p
}

func (p *pod) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pod) reply(Question) Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer.Left > 0 {
		p.until = executor.Boottime() + int64(p.answer.Left)
	}
	select {
	case p.asked <- struct{}{}:
	default:
	}
	return p.answer
}

// say changes the answer, and waits until it was given.
func (p *pod) say(a Answer) {
	p.Helper()
	p.mu.Lock()
	p.answer = a
	select {
	case <-p.asked:
	default:
	}
	p.mu.Unlock()
	select {
	case <-p.asked:
	case <-time.After(patience):
		p.Fatal("it does not ask")
	}
}

// line is the next that the task writes.
func (p *pod) line() string {
	p.Helper()
	s, err := p.out.ReadString('\n')
	p.must(err)
	return strings.TrimSpace(s)
}

// end waits until all of it is dead, and returns what was told, what was written
// and when nobody was left.
func (p *pod) end() (Told, string, int64) {
	p.Helper()
	rest, err := io.ReadAll(p.out)
	at := executor.Boottime()
	p.must(err)
	_ = p.cmd.Wait() // its exit code is that of the task
	b, err := os.ReadFile(p.tell)
	p.must(err)
	told, ok := ReadTold(string(b))
	if !ok || told.ExitCode != p.cmd.ProcessState.ExitCode() {
		p.Errorf("told %s with exit %d", b, p.cmd.ProcessState.ExitCode())
	}
	return told, string(rest), at
}

// forever ignores TERM, and has a child that left its session.
const forever = `trap "" TERM; setsid sleep 1000 & echo up; while :; do sleep 1000; done`

// TestNoLeaveNoTask: nothing begins without an answer, whoever is asked.
func TestNoLeaveNoTask(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Orders){
		"no lease":      nil,
		"nobody":        func(o *Orders) { o.URL = "http://127.0.0.1:1" },
		"wrong secret":  func(o *Orders) { o.Secret = "guessed" },
		"other attempt": func(o *Orders) { o.Attempt = "site-1.7-0-2-9" },
	} {
		first := Answer{Left: 20 * time.Second}
		if change == nil {
			first = Answer{}
		}
		told, out, _ := begin(t, first, change, "echo ran").end()
		if told.Begun || told.Cause != executor.Fenced || out != "" || !strings.Contains(told.Detail, "not started") {
			t.Errorf("%s: told %+v, wrote %q", name, told, out)
		}
	}
	told, out, _ := begin(t, Answer{End: true}, nil, "echo ran").end()
	if told.Begun || told.Cause != executor.Fenced || out != "" {
		t.Errorf("given up: told %+v, wrote %q", told, out)
	}
	told, out, _ = begin(t, Answer{Left: 700 * time.Millisecond}, nil, "echo ran").end()
	if told.Begun || told.Cause != executor.Fenced || out != "" {
		t.Errorf("no time left: told %+v, wrote %q", told, out)
	}
}

// TestEnds: how a task ends by itself is told exactly, and nothing of it is left.
func TestEnds(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]Told{
		"exit 0":                          {Begun: true},
		"exit 7":                          {Begun: true, ExitCode: 7},
		"exit 137":                        {Begun: true, ExitCode: 137},
		"kill -SEGV $$":                   {Begun: true, ExitCode: 139, Signal: 11},
		"setsid sleep 1000 & exit 3":      {Begun: true, ExitCode: 3},
		"kill -9 1; kill -STOP 1; exit 4": {Begun: true, ExitCode: 4}, // its guard is deaf to it
		"exec /none":                      {Begun: true, ExitCode: 127},
	} {
		told, _, _ := begin(t, Answer{Left: patience}, nil, script).end()
		if told.Begun != want.Begun || told.ExitCode != want.ExitCode || told.Signal != want.Signal ||
			told.Cause != executor.Exited || told.Ran <= 0 {
			t.Errorf("%s: told %+v, want %+v", script, told, want)
		}
		u := told.Usage
		if u.PeakMemory <= 0 || u.MemoryFrom == executor.UsageUnknown || u.TimeFrom == executor.UsageUnknown {
			t.Errorf("%s: told usage %+v", script, u)
		}
	}
	p := begin(t, Answer{Left: patience}, nil, "env")
	if _, env, _ := p.end(); strings.Contains(env, p.orders.Secret) || !strings.Contains(env, lastWords) {
		t.Errorf("the task's environment is %s", env)
	}
}

// TestSilenceEnds: when nobody answers any more, all of the task is dead by the moment
// that was told last, though it ignores TERM and has left children.
func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	p := begin(t, Answer{Left: 4 * time.Second}, nil, forever)
	if got := p.line(); got != "up" {
		t.Fatalf("wrote %q", got)
	}
	p.say(Answer{Left: 4 * time.Second})
	p.server.CloseClientConnections()
	p.server.Close()
	told, _, dead := p.end()
	if dead > p.until {
		t.Errorf("dead %s after the moment it was told", time.Duration(dead-p.until))
	}
	if !told.Begun || told.Cause != executor.Fenced || told.ExitCode != 137 || told.Signal != 9 {
		t.Errorf("told %+v", told)
	}
}

// TestExtended: as long as it is told more, it lives beyond what it was told first.
func TestExtended(t *testing.T) {
	t.Parallel()
	p := begin(t, Answer{Left: 2 * time.Second}, nil, "echo up; sleep 5; exit 6")
	if told, _, _ := p.end(); told.ExitCode != 6 || told.Cause != executor.Exited || told.Ran < 5*time.Second {
		t.Errorf("told %+v", told)
	}
}

// TestOthersEndIt: the handler, the kubelet, the timeout; TERM first.
func TestOthersEndIt(t *testing.T) {
	t.Parallel()
	const polite = `trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.1; done`
	for name, c := range map[string]struct {
		change func(*Orders)
		act    func(*pod)
		cause  executor.Cause
	}{
		"given up": {nil, func(p *pod) { p.say(Answer{End: true}) }, executor.Stopped},
		"stopped":  {nil, func(p *pod) { p.must(p.cmd.Process.Signal(syscall.SIGTERM)) }, executor.Stopped},
		"timeout":  {func(o *Orders) { o.Timeout = time.Second }, func(*pod) {}, executor.TimedOut},
	} {
		p := begin(t, Answer{Left: time.Minute}, func(o *Orders) {
			o.Grace = 20 * time.Second // a busy machine's shell is late to its trap
			if c.change != nil {
				c.change(o)
			}
		}, polite)
		p.line()
		c.act(p)
		told, out, _ := p.end()
		if told.Cause != c.cause || out != "bye\n" || told.ExitCode != 143 {
			t.Errorf("%s: told %+v, wrote %q", name, told, out)
		}
	}
}

// TestInstall: the copy is the program, and anybody may run it.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if code := Main([]string{Install, dir}); code != 0 {
			t.Fatalf("exit %d", code)
		}
	}
	st, err := os.Stat(filepath.Join(dir, filepath.Base(Program)))
	if err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v", st, err)
	}
	if Main([]string{Install, filepath.Join(dir, "none")}) == 0 || Main([]string{"true"}) == 0 {
		t.Error("where it cannot be, it says nothing")
	}
}

// TestToldIsBounded: whatever an error says, Kubernetes takes all of it.
func TestToldIsBounded(t *testing.T) {
	b := Told{Detail: strings.Repeat("\x00\u202e", 4096)}.encode()
	if len(b) > maxTold || !json.Valid(b) {
		t.Errorf("%d bytes", len(b))
	}
}
