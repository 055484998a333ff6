package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/files"
)

const (
	// PieceBytes is the length of a blob's pieces; the last one may be shorter.
	PieceBytes = files.PieceBytes
	// MaxBlobBytes bounds the size of a blob.
	MaxBlobBytes = files.MaxFile
	// chunkBytes is how much a frame of an answer carries; the last one of a part may carry less.
	chunkBytes = 256 << 10
	maxParts   = 256 // of a request
	maxSite    = 63  // bytes of a site's name
	// maxRequest bounds a request's frame, in bytes.
	maxRequest = 2*binary.MaxVarintLen64 + maxParts*(3+maxSite+sha256.Size+7*binary.MaxVarintLen64)
)

var errWire = errors.New("malformed request for files")

// What of an attempt is asked for. Answer refuses what it does not know.
type What uint8

// The whats. Numbers are those of the peer port.
const (
	Input    What = iota + 1 // a blob that the attempt's job names as an input; the owner has it
	Manifest                 // the manifest of the attempt's outputs; its executor has it
	Output                   // a blob that this manifest names
	Release                  // no blob: the attempt's outputs may go, says its owner of this manifest; answered by Gone
)

// Blob is what an asker wants, and by which attempt it may have it.
type Blob struct {
	Attempt command.AttemptRef
	What    What
	Hash    [sha256.Size]byte
	Size    int64 // bytes
}

// Request asks for one part of a blob. Invariant of those that were parsed: 0 < Length <= PieceBytes,
// 0 <= Offset <= Size-Length.
type Request struct {
	Blob
	Index          uint64 // entry of the asker's state
	Offset, Length int64  // bytes
}

// appendRequest appends the body of a request: parts of one asker, whose state is as of entry index.
func appendRequest(dst []byte, index uint64, parts []Request) []byte {
	dst = binary.AppendUvarint(dst, index)
	dst = binary.AppendUvarint(dst, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		if i > 0 && p.Attempt == parts[i-1].Attempt {
			dst = append(dst, 0)
		} else {
			dst = appendAttempt(append(dst, 1), p.Attempt)
		}
		dst = append(dst, byte(p.What))
		dst = append(dst, p.Hash[:]...)
		dst = binary.AppendUvarint(dst, uint64(p.Size))
		dst = binary.AppendUvarint(dst, uint64(p.Offset))
		dst = binary.AppendUvarint(dst, uint64(p.Length))
	}
	return dst
}

func appendAttempt(dst []byte, a command.AttemptRef) []byte {
	dst = append(dst, byte(len(a.Job.Site)))
	dst = append(dst, a.Job.Site...)
	dst = binary.AppendUvarint(dst, a.Job.Num)
	dst = binary.AppendUvarint(dst, uint64(a.Task))
	dst = binary.AppendUvarint(dst, uint64(a.Attempt))
	return binary.AppendUvarint(dst, a.Token)
}

// parser reads requests; it keeps the last site's name, so that those of one job cost no memory.
type parser struct {
	site  string
	parts []Request
}

// parse reads a request. What it returns is valid until the next one.
func (x *parser) parse(b []byte) ([]Request, error) {
	d := relay.NewDecoder(b)
	index := d.Uvarint()
	n := d.Count(maxParts, 2+sha256.Size+3)
	x.parts = x.parts[:0]
	var at command.AttemptRef
	for i := range n {
		p := Request{Index: index}
		if fresh := d.Byte(); fresh == 1 {
			at = x.attempt(&d)
		} else if fresh != 0 || i == 0 {
			return nil, fmt.Errorf("%w: part %d names no attempt", errWire, i)
		}
		p.Attempt, p.What = at, What(d.Byte())
		copy(p.Hash[:], d.Fixed(len(p.Hash)))
		size, offset, length := d.Uvarint(), d.Uvarint(), d.Uvarint()
		if d.Bad() || at.Job.Site == "" || p.What == 0 || length == 0 || length > PieceBytes ||
			size > MaxBlobBytes || length > size || offset > size-length {
			return nil, fmt.Errorf("%w: part %d: %d bytes at %d of %d", errWire, i, length, offset, size)
		}
		p.Size, p.Offset, p.Length = int64(size), int64(offset), int64(length)
		x.parts = append(x.parts, p)
	}
	if n == 0 || !d.Done() {
		return nil, fmt.Errorf("%w: %d bytes", errWire, len(b))
	}
	return x.parts, nil
}

// attempt reads a reference; one without a site is bad.
func (x *parser) attempt(d *relay.Decoder) command.AttemptRef {
	if site := d.Bytes(maxSite); string(site) != x.site {
		if x.site = string(site); !command.ValidSite(x.site) {
			x.site = ""
		}
	}
	a := command.AttemptRef{Job: command.JobID{Site: x.site, Num: d.Uvarint()}}
	task, attempt := d.Uvarint(), d.Uvarint()
	a.Task, a.Attempt, a.Token = uint32(task), uint32(attempt), d.Uvarint()
	if uint64(a.Task) != task || uint64(a.Attempt) != attempt {
		return command.AttemptRef{}
	}
	return a
}
