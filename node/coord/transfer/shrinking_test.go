package transfer

import (
	"bytes"
	"testing"
	"time"
)

// What does not shrink is tried every 32nd chunk of a blob, and with each other blob.
func TestIncompressibleIsSentRaw(t *testing.T) {
	var s shrinking
	tries := 0
	one, other := [32]byte{1}, [32]byte{2}
	for range 65 {
		if s.tries(&one) {
			tries++
			s.judge(chunkBytes, chunkBytes-chunkBytes/leastShrink+1, time.Millisecond)
		}
	}
	if tries != 3 || !s.tries(&other) {
		t.Errorf("%d tries of 65", tries)
	}
}

// On a link that is faster than its compression text is sent raw; on a slow one, and before the link is known, not.
func TestFastLinkIsSentRaw(t *testing.T) {
	const cost = 2 * time.Millisecond // for 256 KiB, of which 64 are left
	for name, test := range map[string]struct {
		rate int64 // of one connection of four, bytes a second
		want int   // tries of 64 chunks
	}{"unknown": {0, 64}, "100 Mbit/s": {3e6, 64}, "10 Gbit/s": {300e6, 2}} {
		var s shrinking
		if test.rate > 0 {
			for range 64 {
				s.sent(1<<20, time.Duration(int64(time.Second)<<20/test.rate))
			}
		}
		tries := 0
		for range 64 {
			if s.tries(&[32]byte{byte(tries)}) {
				tries++
				if !s.judge(chunkBytes, chunkBytes/4, cost) {
					t.Error("what was compressed is not sent")
				}
			}
		}
		if tries != test.want {
			t.Errorf("%s: %d tries", name, tries)
		}
	}
}

// What a chunk's encoder makes, its decoder takes.
func TestChunksRoundTrip(t *testing.T) {
	for _, n := range []int{1, leastCompressed, 10_000, chunkBytes} {
		for _, text := range []bool{false, true} {
			b := content(3, n, text)
			got := make([]byte, n)
			if err := decompress(got, compress(nil, b)); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}
