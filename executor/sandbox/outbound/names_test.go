package outbound

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// message is what asks for the types of records, by an operation.
func message(t *testing.T, op dnsmessage.OpCode, class dnsmessage.Class, types ...dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, OpCode: op}}
	for _, kind := range types {
		m.Questions = append(m.Questions, dnsmessage.Question{
			Name: dnsmessage.MustNewName("far.example."), Type: kind, Class: class,
		})
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestQuestionsOnly: of what tasks send to the name server one question passes, no update, transfer or noise.
func TestQuestionsOnly(t *testing.T) {
	const in, query, update = dnsmessage.ClassINET, 0, 5
	a := message(t, query, in, dnsmessage.TypeA)
	answer := slices.Clone(a)
	answer[2] |= 1 << 7
	for name, c := range map[string]struct {
		message []byte
		passes  bool
	}{
		"address":  {a, true},
		"mail":     {message(t, query, in, dnsmessage.TypeMX), true},
		"transfer": {message(t, query, in, dnsmessage.TypeAXFR), false},
		"changes":  {message(t, query, in, 251), false},
		"update":   {message(t, update, in, dnsmessage.TypeSOA), false},
		"chaos":    {message(t, query, dnsmessage.ClassCHAOS, dnsmessage.TypeTXT), false},
		"two":      {message(t, query, in, dnsmessage.TypeA, dnsmessage.TypeAAAA), false},
		"none":     {message(t, query, in), false},
		"answer":   {answer, false},
		"short":    {a[:9], false},
		"empty":    {nil, false},
	} {
		if got := isQuestion(c.message); got != c.passes {
			t.Errorf("%s passes: %t", name, got)
		}
	}
}

// TestNameServers: those of the file, loopback's as well, three at most; without any, loopback is asked.
func TestNameServers(t *testing.T) {
	for file, want := range map[string]string{
		"": "127.0.0.1:53",
		"# nameserver 9.9.9.9\nsearch x\nnameserver\nnameserver x\nnameserver 127.0.0.53": "127.0.0.53:53",
		"nameserver 192.0.2.1\nnameserver 2001:db8::1\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n": "192.0.2.1:53 " +
			"[2001:db8::1]:53 192.0.2.3:53",
	} {
		var got []string
		for _, s := range nameServers(file) {
			got = append(got, s.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

// TestNextServerIsAsked: one that does not answer, or has another question's answer, is not all there is.
func TestNextServerIsAsked(t *testing.T) {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo([]byte{0, 0, 9}, from)
			_, _ = c.WriteTo(buf[:n], from)
		}
	}()
	closed, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	r := resolver{servers: func() []netip.AddrPort {
		return []netip.AddrPort{
			netip.MustParseAddrPort(closed.LocalAddr().String()), netip.MustParseAddrPort(c.LocalAddr().String()),
		}
	}}
	question := message(t, 0, dnsmessage.ClassINET, dnsmessage.TypeA)
	if answer, err := r.ask("udp", question); err != nil || !slices.Equal(answer, question) {
		t.Errorf("%v, %v", answer, err)
	}
	if _, err = r.ask("udp", question[:9]); err == nil {
		t.Error("noise was asked")
	}
}
