package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// stuck is a backend that leads and never settles an entry until it is freed.
type stuck struct {
	Backend
	freed chan struct{}
}

func (s *stuck) Orders() (term uint64, ok bool) { return 1, true }

func (s *stuck) Append(uint64, []byte, []byte) (wait func() (Outcome, uint64)) {
	return func() (Outcome, uint64) {
		<-s.freed
		return Refused, 0
	}
}

func (s *stuck) Remove(context.Context, string) error { return nil }

func (s *stuck) With(func(coord.Machine)) {}

func (s *stuck) Confirm(ctx context.Context, _ uint64) (index uint64, err error) {
	<-ctx.Done()
	return 0, ErrRetry
}

var testGroup = [16]byte{1}

// leaderEnd is the leader's end of forward connections, on a real listener.
func leaderEnd(t *testing.T, b budgets, log zerolog.Logger) (c *Calls, addr string) {
	t.Helper()
	freed := make(chan struct{})
	return leaderEndOf(t, &stuck{freed: freed}, freed, b, log)
}

func leaderEndOf(
	t *testing.T, backend Backend, freed chan struct{}, b budgets, log zerolog.Logger,
) (c *Calls, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMux(ln, "lead", 10*time.Second, log, &Network{})
	m.SetGroup(testGroup)
	ctx, cancel := context.WithCancel(t.Context())
	timing := Timing{
		RPC: time.Second, Reply: 5 * time.Second, Confirm: time.Second, Backoff: time.Millisecond,
		MaxBackoff: time.Second,
		Slots:      4, Gather: 256, EntryBytes: 1 << 20,
	}
	c = New(ctx, Config{Site: "lead", Backend: backend, Position: &Position{}, Mux: m, Timing: timing, Ready: func() {}},
		testGroup, testGroup)
	c.budgets = b
	m.Handle(KindForward, c.Serve)
	m.Serve()
	c.Start()
	t.Cleanup(func() {
		cancel()
		close(freed)
		m.Close()
		c.Drain(time.Minute)
		c.Wait()
	})
	return c, ln.Addr().String()
}

func dialForward(t *testing.T, addr, site string) net.Conn {
	t.Helper()
	d := Dialer{Net: &Network{}, Site: site}
	conn, err := d.Dial(t.Context(), Peer{Site: "lead", Addr: addr}, KindForward, testGroup)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// flood writes frames to many connections, some each, until they are full or closed;
// it returns once the leader takes no more.
func flood(t *testing.T, addr string, frames int, frame func(site string) []byte) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 12 {
		site := fmt.Sprintf("s%d", i%6)
		conn := dialForward(t, addr, site)
		wg.Go(func() {
			b := frame(site)
			for range frames {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := conn.Write(b); err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestHostileFramesStayInMemory: what forwarded calls cost counts, not the bytes of
// their commands alone; empty commands once took a leader from 39 MiB to 2.4 GiB.
func TestHostileFramesStayInMemory(t *testing.T) {
	least := func(site string) []byte {
		return command.Append(nil, command.Command{
			ID:   command.ID{Site: site, Incarnation: 1, Seq: 1},
			Body: &command.Leave{},
		})
	}
	calls := func(n, commands int, cmd []byte) []byte {
		all, cmds := make([]*proposal, n), slices.Repeat([][]byte{cmd}, commands)
		for i := range all {
			all[i] = &proposal{seq: uint64(i), cmds: cmds}
		}
		return EndFrame(appendCalls(Frame(nil), 1, all, nil))
	}
	questions := bytes.Repeat(EndFrame(appendQuestion(Frame(nil), leaderQuestion{kind: frameRead, id: 1})), 4096)
	begun := append(binary.BigEndian.AppendUint32(nil, MaxFrame), make([]byte, MaxFrame-1)...)
	for name, frame := range map[string]func(site string) []byte{
		"empty commands":    func(string) []byte { return calls(1024, 4096, nil) },
		"no commands":       func(string) []byte { return calls(4096, 0, nil) },
		"least calls":       func(site string) []byte { return calls(4096, 1, least(site)) },
		"least commands":    func(site string) []byte { return calls(4, 4096, least(site)) },
		"one of many waits": func(site string) []byte { return append(calls(4095, 1, []byte("x")), calls(1, 1, least(site))...) },
		"questions":         func(string) []byte { return questions },
		"frames begun":      func(string) []byte { return begun },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBudgets()
			b.calls = newBudget(48<<20, 16<<20, 8<<20)
			b.reading = newBudget(24<<20, 16<<20, 8<<20)
			c, addr := leaderEnd(t, b, zerolog.Nop())
			before := heap()
			frames := 1 << 20
			if name == "frames begun" {
				frames = 1
			}
			flood(t, addr, frames, frame)
			grown := heap() - before
			b.calls.mu.Lock()
			held := b.calls.held
			b.calls.mu.Unlock()
			t.Logf("%d KiB more, %d counted", grown>>10, held>>10)
			if limit := (48 + 24 + 12) << 20; grown > limit {
				t.Errorf("%d MiB more in memory, want at most %d", grown>>20, limit>>20)
			}
			if held > 1<<20 && grown > held+held/4+(6<<20) {
				t.Errorf("%d KiB are in memory, but %d KiB are counted", grown>>10, held>>10)
			}
			runtime.KeepAlive(c)
		})
	}
}

// TestFrameBegunMustArrive: a connection may be idle, but what sends a frame byte by
// byte, or never to its end, is closed.
func TestFrameBegunMustArrive(t *testing.T) {
	c, addr := leaderEnd(t, newBudgets(), zerolog.Nop())
	c.t.Reply = time.Second // a frame that is there is read sooner
	idle, slow := dialForward(t, addr, "a"), dialForward(t, addr, "b")
	whole := EndFrame(appendQuestion(Frame(nil), leaderQuestion{kind: frameRemove, id: 1, site: "a"}))
	if _, err := idle.Write(whole); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Write(whole[:6]); err != nil {
		t.Fatal(err)
	}
	_ = slow.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := slow.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the frame that does not come is waited for: %d, %v", n, err)
	}
	_ = idle.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := ReadFrame(idle, nil, MaxFrame); err != nil {
		t.Errorf("an idle connection: %v", err)
	}
	if _, err := idle.Write(whole); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFrame(idle, nil, MaxFrame); err != nil {
		t.Errorf("an idle connection that goes on: %v", err)
	}
}

// TestOthersFillTheBudget: sites that hold all there is leave a little for each other.
func TestOthersFillTheBudget(t *testing.T) {
	b := newBudget(1000, 600, 600)
	b.assured = 50
	flood, more, honest := share{of: b, site: "a"}, share{of: b, site: "b"}, share{of: b, site: "c"}
	if !flood.try(600) || !more.try(400) {
		t.Fatal("the total was not to be had")
	}
	if flood.try(1) || more.try(1) || !honest.try(30) || honest.try(30) {
		t.Error("who holds much has more, or who holds little has none, or too much")
	}
	for i := range 100 {
		(&share{of: b, site: string(rune('d' + i))}).try(50)
	}
	if b.held > 1500 {
		t.Errorf("%d are held of 1000 and half as much again", b.held)
	}
}
