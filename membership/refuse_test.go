package membership

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestWrongKeyOrFederationIsRefused(t *testing.T) {
	key := bytes.Repeat([]byte{7}, KeyBytes)
	for name, edit := range map[string]func(*Config){
		"other key":        func(cfg *Config) { cfg.Key = bytes.Repeat([]byte{8}, KeyBytes) },
		"no key":           func(cfg *Config) { cfg.Key = nil },
		"other federation": func(cfg *Config) { cfg.Key, cfg.Federation = key, [16]byte{9} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t, "a", func(cfg *Config) { cfg.Key = key })
			friend := open(t, "friend", func(cfg *Config) { cfg.Key = key }, a)
			a.awaitState("friend", Alive)
			friend.awaitState("a", Alive)
			tried := make(chan struct{}, 100)
			foe := open(t, "foe", func(cfg *Config) {
				edit(cfg)
				join := cfg.Join
				cfg.Join = func() []string { tried <- struct{}{}; return join() }
			}, a)
			for range 4 { // three whole rounds
				<-tried
			}
			if _, ok := a.member("foe"); ok || len(foe.Members()) != 1 {
				t.Fatalf("a sees %+v, foe sees %+v", a.Members(), foe.Members())
			}
			if n := len(foe.log.lines("check that the address is right")); n != 1 {
				t.Fatalf("foe was told %d times:\n%s", n, foe.log.lines(""))
			}
			if n := len(a.log.lines("")); n == 0 || n > 3 {
				t.Fatalf("a wrote %d lines:\n%s", n, a.log.lines(""))
			}
		})
	}
}

// What members say of themselves is checked before memberlist keeps it.
func TestDelegateRefuses(t *testing.T) {
	d := &delegate{table: newTable("me", time.Now), federation: testFederation}
	good := meta{federation: testFederation, incarnation: 1}
	foreign := meta{federation: [16]byte{9}}
	node := func(edit func(*memberlist.Node)) *memberlist.Node {
		n := &memberlist.Node{
			Name: "site", Addr: net.IPv4(10, 0, 0, 1), Port: 1, PMin: 1, PMax: 5, PCur: 2,
			Meta: good.encode(),
		}
		edit(n)
		return n
	}
	if err := d.NotifyAlive(node(func(*memberlist.Node) {})); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*memberlist.Node){
		"no name":             func(n *memberlist.Node) { n.Name = "" },
		"upper case":          func(n *memberlist.Node) { n.Name = "Site" },
		"long name":           func(n *memberlist.Node) { n.Name = strings.Repeat("a", 64) },
		"line in name":        func(n *memberlist.Node) { n.Name = "a\nb" },
		"no address":          func(n *memberlist.Node) { n.Addr = nil },
		"odd address":         func(n *memberlist.Node) { n.Addr = []byte{1, 2, 3} },
		"unspecified address": func(n *memberlist.Node) { n.Addr = net.IPv4zero },
		"multicast address":   func(n *memberlist.Node) { n.Addr = net.IPv4(224, 0, 0, 1) },
		"no port":             func(n *memberlist.Node) { n.Port = 0 },
		"no metadata":         func(n *memberlist.Node) { n.Meta = nil },
		"foreign metadata":    func(n *memberlist.Node) { n.Meta = foreign.encode() },
		"trailing metadata":   func(n *memberlist.Node) { n.Meta = append(good.encode(), 0) },
		"newer protocol":      func(n *memberlist.Node) { n.PMin, n.PMax, n.PCur = 9, 9, 9 },
		"delegate protocol":   func(n *memberlist.Node) { n.DMin = 1 },
	} {
		if err := d.NotifyAlive(node(edit)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(d.table.members()) != 0 {
		t.Error("refused members were kept")
	}
}

// A node of the federation that is no proper site is ignored, with one line,
// and harms nobody.
func TestImproperMemberIsIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		site, why string
		meta      meta
	}{
		"name":       {"Not_A_Site", "is no site name", meta{federation: testFederation}},
		"federation": {"odd", "belongs to federation 09", meta{federation: [16]byte{9}}},
		"address":    {"odd", "no visible ASCII", meta{federation: testFederation, Meta: Meta{HTTP: "a\nb:1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t, "a", nil)
			b := open(t, "b", nil, a)
			a.awaitState("b", Alive)
			b.awaitState("a", Alive) // each may hear of the other first
			odd := rawMember(t, &a.cfg, tc.site, tc.meta)
			for range 3 {
				if _, err := odd.Join([]string{a.Addr().String()}); err != nil {
					t.Fatal(err)
				}
			}
			lines := a.log.await(t, "ignoring alive message")
			if len(lines) != 1 || !strings.Contains(lines[0], tc.why) {
				t.Fatalf("the log says %q", lines)
			}
			if len(a.Members()) != 2 || len(b.Members()) != 2 {
				t.Fatalf("a sees %+v, b sees %+v", a.Members(), b.Members())
			}
		})
	}
}

// rawMember is memberlist alone, with the federation's label and key.
func rawMember(t *testing.T, cfg *Config, name string, m meta) *memberlist.Memberlist {
	t.Helper()
	c := memberlist.DefaultLocalConfig()
	c.Name, c.BindAddr, c.BindPort = name, "127.0.0.1", 0
	c.Label, c.SecretKey, c.LogOutput = cfg.label(), cfg.secret(), io.Discard
	d := &delegate{}
	d.mine.Store(&m)
	c.Delegate = d
	list, err := memberlist.Create(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := list.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return list
}

// Junk costs little: the members go on, memory stays, the log stays short.
func TestGarbageOnThePort(t *testing.T) {
	t.Parallel()
	a := open(t, "a", nil)
	b := open(t, "b", nil, a)
	a.awaitState("b", Alive)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	junk := func(prefix []byte, most int) []byte {
		b := make([]byte, len(prefix)+rnd.IntN(most))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		copy(b, prefix)
		return b
	}
	label := a.trans.header

	udp, err := net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for i := range 20000 {
		prefix := [][]byte{nil, label, append(bytes.Clone(label), encryption), {labelMsg, 255}}[i%4]
		if _, err := udp.Write(junk(prefix, 8000)); err != nil {
			t.Fatal(err)
		}
	}
	var held []net.Conn
	for i := range 3 * maxStreams {
		conn, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		conn.Write(junk([][]byte{nil, label, append(bytes.Clone(label), encryptedMsg, 0, 15, 255, 255,
			encryption)}[i%3], 4000))
	}
	for _, frame := range hostileFrames(t, &a.cfg) {
		conn, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		conn.Write(frame)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if mem.HeapInuse > 256<<20 {
		t.Errorf("heap grew to %d MiB", mem.HeapInuse>>20)
	}
	for _, conn := range held {
		conn.Close()
	}

	// Both still hear each other.
	if err := b.UpdateIncarnation(77); err != nil {
		t.Fatal(err)
	}
	a.await("b", func(m Member) bool { return m.State == Alive && m.Incarnation == 77 })
	if n := len(a.log.lines("")); n == 0 || n > 12 {
		t.Errorf("%d lines in the log:\n%s", n, a.log.lines(""))
	}
}

// hostileFrames are rightly sealed, by somebody who knows the federation's id,
// and would make memberlist panic.
func hostileFrames(t *testing.T, cfg *Config) [][]byte {
	t.Helper()
	block, err := aes.NewCipher(cfg.secret())
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	frame := func(version byte, plain []byte) []byte {
		head := binary.BigEndian.AppendUint32([]byte{encryptedMsg}, uint32(encryptOverhead+len(plain)))
		auth := append(bytes.Clone(head), cfg.label()...)
		body := append([]byte{version}, make([]byte, 12)...)
		body = gcm.Seal(body, body[1:13], plain, auth)
		return append(append(labelHeader(cfg.label()), head...), body...)
	}
	return [][]byte{frame(1, nil), frame(0, bytes.Repeat([]byte{255}, 16)), frame(0, nil)}
}

func TestStreamGivesOneFrame(t *testing.T) {
	frame := append([]byte{encryptedMsg, 0, 0, 0, 40, encryption}, bytes.Repeat([]byte{5}, 39)...)
	for name, tc := range map[string]struct {
		sent []byte
		want int
		junk bool
	}{
		"whole":         {frame, len(frame), false},
		"and more":      {append(bytes.Clone(frame), 1, 2, 3), len(frame), false},
		"cut off":       {frame[:20], 20, false},
		"nothing":       {nil, 0, false},
		"other type":    {append([]byte{6}, frame[1:]...), 0, true},
		"too long":      {append([]byte{encryptedMsg, 0, 16, 0, 1}, frame[5:]...), 0, true},
		"sealed empty":  {append([]byte{encryptedMsg, 0, 0, 0, 29}, frame[5:]...), 0, true},
		"other version": {append([]byte{encryptedMsg, 0, 0, 0, 40, 0}, frame[6:]...), 0, true},
	} {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			io.Copy(far, bytes.NewReader(tc.sent)) //nolint:errcheck // the other end may close first
		}()
		closed := 0
		s := &stream{Conn: near, done: func() { closed++ }}
		var got bytes.Buffer
		_, err := got.ReadFrom(s)
		if got.Len() != tc.want || errors.Is(err, errJunk) != tc.junk {
			t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
		}
		s.Close()
		s.Close()
		if closed != 1 {
			t.Errorf("%s: closed %d times", name, closed)
		}
	}
}
