package transfer

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// cutting ends a connection behind so many bytes that it has written.
type cutting struct {
	net.Conn
	left atomic.Int64
}

func (c *cutting) Write(b []byte) (int, error) {
	if left := c.left.Add(-int64(len(b))); left < 0 {
		n, _ := c.Conn.Write(b[:max(0, left+int64(len(b)))])
		_ = c.Close()
		return n, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// Whatever is missing comes, and only that, however often connections are cut wherever; a pull that ends meanwhile is
// gone on with from what the sink has.
func TestResumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 60_000).Draw(t, "size")
		piece := int64(rapid.IntRange(700, 9000).Draw(t, "piece"))
		b := content(rapid.Uint64Range(0, 1<<20).Draw(t, "seed"), size, rapid.Bool().Draw(t, "text"))
		cuts := rapid.SliceOfN(rapid.IntRange(0, 30_000), 0, 12).Draw(t, "cuts")
		h := hold(b)
		s := &Server{Answer: h.answer}
		var dialed atomic.Int64
		c := NewClient(func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			conn := &cutting{Conn: server}
			conn.left.Store(1 << 40)
			if n := int(dialed.Add(1)); n <= len(cuts) {
				conn.left.Store(int64(cuts[n-1]))
			}
			go s.Serve(context.Background(), conn, relay.Preamble{Site: "b"})
			return client, nil
		})
		defer c.Close()
		c.piece = piece
		to := newSink(size, piece)
		for i := range to.missing {
			if rapid.Bool().Draw(t, "there already") {
				at := int64(i) * piece
				copy(to.b[at:min(at+piece, int64(size))], b[at:])
				delete(to.missing, i)
				h.asked[at] = -1 << 20
			}
		}
		rounds := 0
		for {
			before := len(to.missing)
			err := c.Pull(context.Background(), "a", "x:1", 7, nameOf(b), to)
			if err == nil {
				break
			}
			if rounds++; !errors.Is(err, ErrUnreachable) || rounds > len(cuts) || len(to.missing) > before {
				t.Fatalf("round %d: %v", rounds, err)
			}
		}
		if !bytes.Equal(to.b, b) || to.twice > 0 || len(to.missing) > 0 {
			t.Fatalf("other bytes; %d pieces twice, %d missing", to.twice, len(to.missing))
		}
		for at, n := range h.asked {
			if n > 1+2*len(cuts) || n < 0 && n != -1<<20 {
				t.Fatalf("the piece at %d was asked for %d times, of %d cuts", at, n, len(cuts))
			}
		}
	})
}

// Random batches come whole, in spite of cuts: each blob once.
func TestBatchResumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 700).Draw(t, "sizes")
		cuts := rapid.SliceOfN(rapid.IntRange(0, 200_000), 0, 5).Draw(t, "cuts")
		var all [][]byte
		var blobs []Blob
		for i, n := range sizes {
			all = append(all, content(uint64(i), n, i%3 > 0))
			blobs = append(blobs, nameOf(all[i]))
		}
		s := &Server{Answer: hold(all...).answer}
		var dialed atomic.Int64
		c := NewClient(func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			conn := &cutting{Conn: server}
			conn.left.Store(1 << 40)
			if n := int(dialed.Add(1)); n <= len(cuts) {
				conn.left.Store(int64(cuts[n-1]))
			}
			go s.Serve(context.Background(), conn, relay.Preamble{Site: "b"})
			return client, nil
		})
		defer c.Close()
		came := make([]atomic.Int32, len(blobs))
		for rounds := 0; ; rounds++ {
			var left []Blob
			var numbers []int
			for i := range blobs {
				if came[i].Load() == 0 {
					left, numbers = append(left, blobs[i]), append(numbers, i)
				}
			}
			err := c.PullBatch(context.Background(), "a", "x:1", 7, left, func(i int, b []byte, refused error) error {
				if came[numbers[i]].Add(1); !bytes.Equal(b, all[numbers[i]]) {
					return errNoDisk
				}
				return refused
			})
			if err == nil {
				break
			}
			if !errors.Is(err, ErrUnreachable) || rounds > len(cuts) {
				t.Fatalf("round %d: %v", rounds, err)
			}
		}
		for i := range came {
			if n := came[i].Load(); n != 1 {
				t.Fatalf("blob %d came %d times", i, n)
			}
		}
	})
}
