//go:build zookeeper

package zk

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// late is a connection whose answers come later by a constant, as over a long line.
func late(conn net.Conn, by time.Duration) net.Conn {
	near, far := net.Pipe()
	type piece struct {
		data []byte
		due  time.Time
	}
	line := make(chan piece, 1<<12)
	go func() {
		_, _ = io.Copy(conn, far) // until the near end is closed
		_ = conn.Close()
	}()
	go func() {
		defer close(line)
		for {
			b := make([]byte, 64<<10)
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			line <- piece{b[:n], time.Now().Add(by)}
		}
	}()
	go func() {
		defer far.Close()
		for p := range line {
			<-time.After(time.Until(p.due))
			if _, err := far.Write(p.data); err != nil {
				_ = conn.Close()
			}
		}
	}()
	return near
}

// TestFarEnsemble: an ensemble that takes a quarter of a session for each answer is
// slow, but not away: a leader is found, and it stays.
func TestFarEnsemble(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.far = c.place.Session / 4
	all := c.open(t, "a", "b")
	term := c.leader(t).Status().Term
	talk(t, all, func() {})
	if now := c.leader(t).Status().Term; now != term {
		t.Errorf("%d terms later", now-term)
	}
}

// TestTimePassesFar: log time does not wait for looks at who is who, which take many
// answers of a far ensemble.
func TestTimePassesFar(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.place.Session = 1200 * time.Millisecond
	c.far = c.place.Session / 4
	a := c.open(t, "a")[0]
	c.leader(t)
	const entries = 5
	began, from := time.Now(), a.m.Index()
	if err := a.l.machine.position.Wait(patience(t), from+entries); err != nil {
		t.Fatal(err)
	}
	// With a look it would be two and more for an entry, of about nine answers each.
	if took := time.Since(began); took > entries*7*c.far {
		t.Errorf("%d idle entries took %v, at %v an answer", entries, took, c.far)
	}
}

// TestStutter: the ensemble's leader gets every other moment only, for a while; what
// is said meanwhile is executed once, and then one leader stays.
func TestStutter(t *testing.T) {
	c := newCluster(t)
	all := c.open(t, "a", "b", "cc")
	for _, pause := range []time.Duration{c.place.Session / 4, 2 * c.place.Session} {
		before := c.leader(t).Status().Term
		talk(t, all, func() {
			slow := servers.Leader()
			for range 8 * time.Second / (2 * pause) {
				slow.Signal(syscall.SIGSTOP)
				<-time.After(pause)
				slow.Signal(syscall.SIGCONT)
				<-time.After(pause)
			}
			awaitServers(t)
		})
		during := c.leader(t).Status().Term
		<-time.After(5 * c.place.Session)
		after := c.leader(t).Status().Term
		t.Logf("stopped for %v of %v: %d terms", pause, 2*pause, during-before)
		if after != during {
			t.Errorf("%d terms more when it was over", after-during)
		}
	}
}
