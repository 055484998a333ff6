package transfer

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// leastCompressed is the shortest chunk, in bytes, that is worth the try.
const leastCompressed = 512

// encoder is shared: EncodeAll may be called by all at a time, and waits when all processors compress.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(chunkBytes), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		panic(err) // of constant options
	}
	return e
})

// decoder is shared as well. It writes no byte behind the capacity of what it is given, and allocates no window that
// is greater than a chunk.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(chunkBytes),
		zstd.WithDecoderMaxWindow(chunkBytes), zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		panic(err) // of constant options
	}
	return d
})

// compress returns b compressed, in dst if that has room.
func compress(dst, b []byte) []byte { return encoder().EncodeAll(b, dst[:0]) }

// decompress fills dst with what b holds, which must be as long; it touches no other byte.
func decompress(dst, b []byte) error {
	out, err := decoder().DecodeAll(b, dst[:0:len(dst)])
	switch {
	case err != nil:
		return fmt.Errorf("%w: compressed: %w", ErrPeer, err)
	case len(out) != len(dst):
		return fmt.Errorf("%w: %d bytes compressed, not %d", ErrPeer, len(out), len(dst))
	case len(out) > 0 && &out[0] != &dst[0]:
		copy(dst, out)
	}
	return nil
}
