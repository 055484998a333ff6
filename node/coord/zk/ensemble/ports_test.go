package ensemble

import (
	"net"
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
