package zk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Bounds of the frames that a server sends, in bytes. The library makes room for
// whatever the first four bytes of a greeting promise, and takes a header out of
// every frame behind it without a look at its length.
const (
	minGreeting = 20
	maxGreeting = 1 << 10
	minFrame    = 16
)

var errSpeech = errors.New("it is no ZooKeeper server")

// frames follows the lengths in what a server sends.
type frames struct {
	head     [4]byte // length of the frame under way
	have     int     // bytes of it that are here
	left     int     // bytes of the frame that are to come
	greeting []byte  // first 8 bytes of the first frame
	greeted  bool    // the first frame is over
}

// pass looks at bytes that go to the library, and refuses lengths that no server
// sends.
func (f *frames) pass(b []byte) error {
	for len(b) > 0 {
		if f.have < len(f.head) {
			n := copy(f.head[f.have:], b)
			f.have += n
			b = b[n:]
			if err := f.checkLength(); err != nil {
				return err
			}
			continue
		}
		n := min(len(b), f.left)
		if want := 8 - len(f.greeting); !f.greeted && want > 0 {
			f.greeting = append(f.greeting, b[:min(n, want)]...)
		}
		f.left -= n
		b = b[n:]
		if f.left == 0 {
			f.have, f.greeted = 0, true
		}
	}
	return nil
}

// checkLength checks the length of a frame once it is known.
func (f *frames) checkLength() error {
	if f.have < len(f.head) {
		return nil
	}
	size := binary.BigEndian.Uint32(f.head[:])
	if f.greeted && size < minFrame || !f.greeted && (size < minGreeting || size > maxGreeting) {
		return fmt.Errorf("%w: it says %q: check the port", errSpeech, f.head[:])
	}
	f.left = int(size)
	return nil
}

// session returns the timeout that the server has given, 0 if it is not known.
func (f *frames) session() time.Duration {
	if len(f.greeting) < 8 {
		return 0
	}
	return time.Duration(max(0, int32(binary.BigEndian.Uint32(f.greeting[4:])))) * time.Millisecond
}
