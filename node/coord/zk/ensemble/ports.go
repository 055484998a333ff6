package ensemble

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePorts returns the first of n consecutive TCP ports of a host of this machine
// that are free now. They lie below the range from which the system takes ports by
// itself: a process that is killed and started again finds its own free, though
// others dial it meanwhile.
func FreePorts(host string, n int) (first int, err error) {
	for range 200 {
		first = 12000 + rand.IntN(18000)
		if allFree(host, first, n) {
			return first, nil
		}
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
