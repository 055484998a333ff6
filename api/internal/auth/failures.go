package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	maxFailures  = 10   // wrong tokens a second that are looked at, of one address
	maxAddresses = 4096 // that are told apart in one second; the others share a count
)

// failures counts wrong tokens by address. It forgets each second: what it holds is bounded, and nobody is shut out
// for longer.
type failures struct {
	now func() time.Time

	mu     sync.Mutex
	second int64                // guarded by mu
	counts map[netip.Prefix]int // of that second; guarded by mu. Invariant: at most maxAddresses and the shared one
}

func newFailures() *failures { return &failures{now: time.Now, counts: map[netip.Prefix]int{}} }

// note counts one and reports whether it may still be told why it failed.
func (f *failures) note(remote string) bool {
	from := sender(remote)
	f.mu.Lock()
	defer f.mu.Unlock()
	if second := f.now().Unix(); second != f.second {
		f.second = second
		clear(f.counts)
	}
	if _, known := f.counts[from]; !known && len(f.counts) >= maxAddresses {
		from = netip.Prefix{}
	}
	f.counts[from]++
	return f.counts[from] <= maxFailures
}

// sender returns whom a remote address counts for: a whole network of IPv6, as one host has as many as it likes.
func sender(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap(), 64
	if ip.Is4() {
		bits = 32
	}
	network, err := ip.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
