package membership

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

const childEnv = "CLOUDSHARE_TEST_GOSSIP_THROUGH"

var pauses = flag.Int("pauses", 1, "how many times a member is stopped for 0.9 s")

// childMain is a member in a process of its own. It writes each event as a line
// of JSON, and ends with its standard input.
func childMain() {
	g, err := Open(Config{
		Site: "child", Federation: testFederation, Listen: "127.0.0.1:0", Logger: zerolog.Nop(),
		Join: func() []string { return []string{os.Getenv(childEnv)} },
	})
	fatal(err)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		fatal(err)
		fatal(g.Close())
	}()
	enc := json.NewEncoder(os.Stdout)
	for ev := range g.Events() {
		fatal(enc.Encode(ev))
	}
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A member that stands still for less than a second is not declared dead, nor
// does it declare others dead when it goes on. A death beside which the machine
// stood still says nothing: then it is tried again.
func TestShortPauseIsNoDeath(t *testing.T) {
	t.Parallel()
	lan := func(cfg *Config) { cfg.timing = nil }
	a := open(t, "a", lan)
	b := open(t, "b", lan, a)
	seen, child := startChild(t, a.Addr().String())
	var suspicions int
	for paused, tries := 0, 0; paused < *pauses; tries++ {
		a.awaitState("child", Alive)
		b.awaitState("child", Alive)
		late := watchLateness(t)
		p := pausing{a: a, b: b, seen: seen, child: child}
		p.pause(t)
		stood := late.sum()
		switch {
		case p.deaths == 0:
			paused++
		case stood < lateEnough:
			t.Fatalf("%d false deaths; the machine stood still for %v", p.deaths, stood)
		case tries > 20*(*pauses):
			t.Log("the machine stands still too often to tell")
			return
		}
		suspicions += p.suspicions
	}
	t.Logf("%d pauses of 0.9 s: %d suspicions, no death", *pauses, suspicions)
}

// pausing is a child that is stopped for a moment, and what is thought of it and by it.
type pausing struct {
	a, b               *node
	seen               <-chan Event
	child              *os.Process
	deaths, suspicions int
}

func (p *pausing) pause(t *testing.T) {
	t.Helper()
	if err := p.child.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume, quiet := time.After(900*time.Millisecond), time.After(3500*time.Millisecond)
	for {
		var m Member
		select {
		case ev := <-p.a.Events():
			m = ev.Member
		case ev := <-p.b.Events():
			m = ev.Member
		case ev := <-p.seen:
			m = ev.Member
		case <-resume:
			if err := p.child.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		case <-quiet:
			return
		}
		switch m.State {
		case Dead:
			p.deaths++
		case Suspect:
			p.suspicions++
		default:
		}
	}
}

func startChild(t *testing.T, through string) (<-chan Event, *os.Process) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+through)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	events := make(chan Event, 100)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var ev Event
			if err := json.NewDecoder(strings.NewReader(lines.Text())).Decode(&ev); err == nil {
				events <- ev
			}
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		err := cmd.Process.Signal(syscall.SIGCONT)
		<-read
		if err = errors.Join(err, cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return events, cmd.Process
}
