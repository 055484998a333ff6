package main

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/test/chaos/netlab"
)

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{5, 20, 100}, []float64{10, 40, 200}, 2},
		{[]float64{5, 100}, []float64{7, 7}, 0},
		{[]float64{5, 5}, []float64{1, 2}, 0},
		{[]float64{5}, []float64{1}, 0},
		{nil, nil, 0},
		{[]float64{0, 1, 2}, []float64{0, 3, 0}, 0},
	} {
		if got := slope(c.x, c.y); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("slope of %v over %v is %v, want %v", c.y, c.x, got, c.want)
		}
	}
	for v, want := range map[float64]string{0.0123456: "+0.0123", -2.5: "-2.5", 15089: "+15089", 0: "+0"} {
		if got := slopeText(v); got != want {
			t.Errorf("%v is shown as %q, want %q", v, got, want)
		}
	}
}

func TestMemoryOfAProcess(t *testing.T) {
	text := "00400000-7fff [rollup]\nRss: 9999 kB\nPss:   2048 kB\nPss_Dirty: 1 kB\nPrivate_Clean: 512 kB\nPrivate_Dirty: 512 kB\n"
	if m, err := parseMemory(text); err != nil || m.own != 1 || m.share != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := parseMemory("Pss: 1 kB\n"); err == nil {
		t.Error("a process without private pages was understood")
	}
}

// A size that was not reached has no figures, and a row that no size has is left out.
func TestGrowthSheet(t *testing.T) {
	g := growth{profile: "lan", steps: []step{
		{sites: 5, found: map[string]float64{rowEntries: 1}},
		{sites: 15, found: map[string]float64{rowEntries: 2, rowJoined: 9}},
		{sites: 25, found: map[string]float64{}},
	}}
	s := g.sheet()
	if want := []string{"sites", "5", "15", "25", "an added site", "unit"}; !slices.Equal(s.head, want) {
		t.Errorf("head %q", s.head)
	}
	want := [][]string{{rowJoined, "-", "9", "-", "+0", "sites"}, {rowEntries, "1", "2", "-", "+0.1", "/s"}}
	if !slices.EqualFunc(s.rows, want, slices.Equal[[]string]) {
		t.Errorf("rows %q", s.rows)
	}
}

// packet is the beginning of an IP packet between two ports.
func packet(protocol byte, from, to uint16) []byte {
	p := make([]byte, 28)
	p[0], p[9] = 4<<4|5, protocol
	binary.BigEndian.PutUint16(p[20:], from)
	binary.BigEndian.PutUint16(p[22:], to)
	return p
}

func TestPacketsCountForTheirListener(t *testing.T) {
	const tcp, udp, other = 6, 17, 1
	l := links{first: 20000, sites: 2, calls: make([]traffic, 2)}
	for _, p := range [][]byte{
		packet(tcp, 40000, 20001), packet(tcp, 20001, 40000), // the first site's port for brokers, both ways
		packet(tcp, 40000, 20004),
		packet(udp, 20002, 20005), packet(tcp, 40000, 20002), // gossip, once each
		packet(tcp, 40000, 20003), packet(tcp, 40000, 20006), // an API, nobody's
		packet(other, 0, 0), packet(tcp, 40000, 20001)[:22],
		{},
	} {
		l.count(p, 100)
	}
	if want := []traffic{{200, 2}, {100, 1}}; !slices.Equal(l.calls, want) || l.gossip != (traffic{200, 2}) {
		t.Errorf("calls %v, gossip %v", l.calls, l.gossip)
	}
}

// What is sent in a host is counted, by its length. Some roots have no hosts (netlab tests that it is said).
func TestListenerSeesTheLoopback(t *testing.T) {
	lab, err := netlab.New(1)
	if errors.Is(err, netlab.ErrNotRoot) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Log("no hosts here: ", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	h := lab.Hosts[0]
	l, err := listenIn(h, 20000, 1)
	if err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	err = h.Do(func() (err error) {
		if conn, err = net.Dial("udp", h.Addr+":20002"); err == nil {
			_, err = conn.Write(make([]byte, 1000))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	got, err := l.end()
	if err != nil || got.gossip != (traffic{1028, 1}) {
		t.Errorf("counted %+v, %v", got.gossip, err)
	}
}
