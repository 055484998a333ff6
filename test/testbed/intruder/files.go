package intruder

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
)

// Codes of the frames that answer for a part of a blob.
const (
	partRaw     = 0
	partZstd    = 1
	partRefused = 2
)

// AskFile dials a site for one part of a blob, whatever its numbers are, and returns the first frame of what it is
// given, which may be compressed, or the refusal. io.EOF: the site has hung up.
func (i *Intruder) AskFile(ctx context.Context, to relay.Peer, q transfer.Request) ([]byte, transfer.Refusal, error) {
	return i.AskFileRaw(ctx, to, EncodeFiles(q.Index, q))
}

// AskFileRaw is AskFile for what may be no request.
func (i *Intruder) AskFileRaw(ctx context.Context, to relay.Peer, request []byte) ([]byte, transfer.Refusal, error) {
	conn, err := i.Dial(ctx, to, relay.KindFiles)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = conn.Close() }()
	if err = conn.Send(request); err != nil {
		return nil, 0, err
	}
	b, err := conn.Receive()
	switch {
	case err != nil:
		return nil, 0, err
	case len(b) == 0:
		return nil, 0, io.ErrUnexpectedEOF
	case b[0] == partRefused && len(b) == 2:
		return nil, transfer.Refusal(b[1]), nil
	case b[0] == partRaw, b[0] == partZstd:
		return b[1:], transfer.Granted, nil
	}
	return nil, 0, fmt.Errorf("%w: frame %x", ErrAnswer, b[:min(len(b), 20)])
}

// EncodeFiles encodes a request for files, valid or not.
func EncodeFiles(index uint64, parts ...transfer.Request) []byte {
	b := binary.AppendUvarint(nil, index)
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		b = append(b, 1, byte(len(p.Attempt.Job.Site)))
		b = append(b, p.Attempt.Job.Site...)
		for _, n := range [...]uint64{
			p.Attempt.Job.Num, uint64(p.Attempt.Task), uint64(p.Attempt.Attempt), p.Attempt.Token,
		} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(append(b, byte(p.What)), p.Hash[:]...)
		for _, n := range [...]int64{p.Size, p.Offset, p.Length} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}
