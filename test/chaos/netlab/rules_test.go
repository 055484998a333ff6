package netlab

import (
	"encoding/binary"
	"testing"
)

// tcp is a packet between two hosts.
func tcp(from, to byte, src, dst uint16) []byte {
	b := make([]byte, 40)
	b[0], b[9] = 0x45, protoTCP
	copy(b[12:], []byte{10, 77, 0, from, 10, 77, 0, to})
	binary.BigEndian.PutUint16(b[20:], src)
	binary.BigEndian.PutUint16(b[22:], dst)
	return b
}

func TestParse(t *testing.T) {
	p, ok := parse(tcp(1, 3, 40000, 7701), 3)
	if want := (packet{1, 3, 40, 40000, 7701}); !ok || p != want {
		t.Errorf("got %+v %v", p, ok)
	}
	later := tcp(1, 3, 40000, 7701)
	later[7] = 1 // a later fragment has no ports
	if p, ok := parse(later, 3); !ok || p.dst != 0 {
		t.Errorf("fragment: %+v %v", p, ok)
	}
	for name, b := range map[string][]byte{
		"nothing":  {},
		"short":    tcp(1, 2, 1, 2)[:19],
		"IPv6":     append([]byte{0x60}, make([]byte, 39)...),
		"stranger": tcp(1, 4, 1, 2),
		"no host":  tcp(0, 1, 1, 2),
	} {
		if p, ok := parse(b, 3); ok {
			t.Errorf("%s: parsed as %+v", name, p)
		}
	}
	lying := tcp(1, 2, 1, 2)
	lying[0] = 0x4f // a header longer than the packet
	if p, ok := parse(lying, 3); !ok || p.src != 0 {
		t.Errorf("lying header: %+v %v", p, ok)
	}
}

func TestCuts(t *testing.T) {
	var c Cuts
	passes := func(from, to int, port uint16) bool {
		return !c.drops(packet{from: from, to: to, size: 40, src: 40000, dst: port})
	}
	answers := func(from, to int, port uint16) bool {
		return !c.drops(packet{from: from, to: to, size: 40, src: port, dst: 40000})
	}

	healOut := c.Cut(Rule{From: 2})
	if passes(2, 1, 80) || !passes(1, 2, 80) || !passes(1, 3, 80) {
		t.Error("a one-way cut of all that 2 sends")
	}
	heal := c.Cut(Isolate(1, 7702)...)
	if passes(1, 3, 7702) || answers(3, 1, 7702) || passes(3, 1, 7702) || !passes(1, 3, 7701) || !passes(3, 4, 7702) {
		t.Error("a cut of one port of 1")
	}
	heal()
	heal() // healing twice is healing once
	if !passes(1, 3, 7702) || passes(2, 3, 80) {
		t.Error("healing took back more or less than its own rules")
	}
	healOut()
	heal = c.Cut(Rule{From: 1, To: 2, ToPort: 7701})
	if passes(1, 2, 7701) || !answers(1, 2, 7701) {
		t.Error("a cut of 1's requests to 2, and not of its answers")
	}
	heal()
	heal = c.Cut(Rule{From: 1, To: 2, FromPort: 7701})
	if !passes(1, 2, 7701) || answers(1, 2, 7701) {
		t.Error("a cut of 1's answers to 2, and not of its requests")
	}
	heal()
	heal = c.Cut(Rule{To: 2, Over: 40}, Rule{To: 3, Over: 39})
	if !passes(1, 2, 80) || passes(1, 3, 80) {
		t.Error("a path that swallows large packets")
	}
	heal()
	c.Cut(Rule{From: 1, To: 2})
	c.HealAll()
	if !passes(1, 2, 80) || !passes(2, 1, 80) {
		t.Error("something is cut after all was healed")
	}
}
