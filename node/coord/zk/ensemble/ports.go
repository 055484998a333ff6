package ensemble

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
)

// FreePorts returns the first of n consecutive TCP ports of a host of this machine
// that are free now, and that no other call has returned, of this process or of
// another one that runs. They lie below the range from which the system takes ports by
// itself: a process that is killed and started again finds its own free, though
// others dial it meanwhile.
func FreePorts(host string, n int) (first int, err error) {
	for range 200 {
		first = 12000 + rand.IntN(18000)
		if !claims.claimPorts(first, n) {
			continue
		}
		if allFree(host, first, n) {
			return first, nil
		}
		claims.releasePorts(first, n)
	}
	return 0, fmt.Errorf("found no %d consecutive free ports on %s", n, host)
}

func allFree(host string, first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// claimed are ports that were returned. Processes tell each other by sockets whose
// names, like ports, belong to the network namespace, and end with the process.
type claimed struct {
	mu   sync.Mutex
	held map[int]net.Listener // nil where no such sockets are
}

var claims = claimed{held: map[int]net.Listener{}}

// claimPorts claims n ports, all or none.
func (c *claimed) claimPorts(first, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for port := first; port < first+n; port++ {
		if !c.claimPort(port) {
			c.releaseClaims(first, port-first)
			return false
		}
	}
	return true
}

// releasePorts takes a claim of n ports back.
func (c *claimed) releasePorts(first, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseClaims(first, n)
}

// REQUIRES: c.mu held.
func (c *claimed) claimPort(port int) bool {
	if _, taken := c.held[port]; taken {
		return false
	}
	var l net.Listener
	if runtime.GOOS == "linux" {
		var err error
		if l, err = net.Listen("unix", fmt.Sprintf("@cloudshare-port-%d", port)); err != nil {
			return false
		}
	}
	c.held[port] = l
	return true
}

// REQUIRES: c.mu held.
func (c *claimed) releaseClaims(first, n int) {
	for port := first; port < first+n; port++ {
		if l := c.held[port]; l != nil {
			_ = l.Close()
		}
		delete(c.held, port)
	}
}
