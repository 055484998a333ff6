package ensemble

import (
	"net"
	"runtime"
	"strconv"
	"testing"
)

// TestFreePorts: consecutive, free, and none that the system gives to whoever dials.
func TestFreePorts(t *testing.T) {
	const host = "127.0.0.1"
	first, err := FreePorts(host, 9)
	if err != nil || first < 12000 || first+9 > 32768 {
		t.Fatalf("%d, %v", first, err)
	}
	if !allFree(host, first, 9) {
		t.Fatal("taken")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(first+8)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if allFree(host, first, 9) || !allFree(host, first, 8) {
		t.Error("a port in use counts as free")
	}
}

// TestPortsAreReturnedOnce: those that one test has got and does not use yet are not
// another test's, nor another process's.
func TestPortsAreReturnedOnce(t *testing.T) {
	first, err := FreePorts("127.0.0.1", 3)
	if err != nil {
		t.Fatal(err)
	}
	if claims.claimPorts(first+2, 2) {
		t.Error("a port was claimed twice")
	}
	other := claimed{held: map[int]net.Listener{}} // as another process's
	if runtime.GOOS == "linux" && other.claimPorts(first-1, 2) {
		t.Error("another process claims it, too")
	}
	if len(other.held) != 0 {
		t.Errorf("of a claim that failed, %v are held", other.held)
	}
}
