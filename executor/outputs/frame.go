package outputs

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cloudshare/cloudshare/executor"
)

// A frame is one attempt's output in a segment, little endian:
//
//	0   magic
//	4   checksum of the segment's salt and the head from byte 8 on
//	8   checksum of the streams
//	12  end of the attempt, unix milliseconds
//	20  token
//	28  task
//	32  attempt
//	36  bytes of stdout, of stderr
//	52  flags: which streams are in files of their own
//	53  length of the job's name
//	54  length of the note
//	56  the job's name, the note; then the streams that are not in files of their own
const (
	magic    = "cSo1"
	fixed    = 56
	maxJob   = 200
	maxNote  = 1 << 10
	maxHead  = fixed + maxJob + maxNote
	maxFrame = maxHead + 2*MaxInline
	// maxStream bounds a length that is read: nothing that is larger was ever written.
	maxStream = 1 << 50
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// salt makes a segment's frames its own: what a task prints can never look like one.
type salt [8]byte

// head is all of a frame but the streams.
type head struct {
	id    executor.ID
	at    int64 // unix milliseconds
	out   [2]int64
	apart [2]bool // the stream is in a file of its own
	note  string
	sum   uint32 // of the streams
	size  int    // of the head, in bytes
}

// inline returns how many bytes of a stream stand in the frame.
func (h *head) inline(stream int) int64 {
	if h.apart[stream] {
		return 0
	}
	return h.out[stream]
}

// total returns the frame's bytes.
func (h *head) total() int64 { return int64(h.size) + h.inline(0) + h.inline(1) }

// charge returns what the output counts for against the store's bound.
func (h *head) charge() int64 { return max(int64(h.size)+h.out[0]+h.out[1], minCharge) }

// headOf returns the head of an item's frame, without sum and size.
func headOf(it *Item) head {
	h := head{id: it.ID, at: it.At.UnixMilli(), note: it.Note[:min(len(it.Note), maxNote)]}
	for n := range it.Streams {
		h.apart[n] = it.Streams[n].Path != ""
		h.out[n] = it.Streams[n].size()
	}
	h.size = fixed + len(h.id.Job) + len(h.note)
	return h
}

// appendFrame appends an item's frame. REQUIRES: the item is valid.
func appendFrame(dst []byte, own salt, it *Item) []byte {
	h := headOf(it)
	le, begin := binary.LittleEndian, len(dst)
	sum := crc32.Update(crc32.Checksum(it.Streams[0].Text, castagnoli), castagnoli, it.Streams[1].Text)
	dst = append(append(dst, magic...), 0, 0, 0, 0)
	dst = le.AppendUint32(dst, sum)
	dst = le.AppendUint64(dst, uint64(h.at))
	dst = le.AppendUint64(dst, h.id.Token)
	dst = le.AppendUint32(dst, h.id.Task)
	dst = le.AppendUint32(dst, h.id.Attempt)
	dst = le.AppendUint64(dst, uint64(h.out[0]))
	dst = le.AppendUint64(dst, uint64(h.out[1]))
	dst = append(dst, flagsOf(h.apart), byte(len(h.id.Job)))
	dst = le.AppendUint16(dst, uint16(len(h.note)))
	dst = append(append(dst, h.id.Job...), h.note...)
	le.PutUint32(dst[begin+4:], headSum(own, dst[begin+8:]))
	return append(append(dst, it.Streams[0].Text...), it.Streams[1].Text...)
}

func flagsOf(apart [2]bool) (flags byte) {
	for n, yes := range apart {
		if yes {
			flags |= 1 << n
		}
	}
	return flags
}

func headSum(own salt, b []byte) uint32 {
	return crc32.Update(crc32.Checksum(own[:], castagnoli), castagnoli, b)
}

// parseHead reads the head that b begins with, whatever b is.
func parseHead(b []byte, own salt) (h head, ok bool) {
	if len(b) < fixed || string(b[:4]) != magic {
		return h, false
	}
	le := binary.LittleEndian
	job, note := int(b[53]), int(le.Uint16(b[54:]))
	h.size = fixed + job + note
	if b[52] > 3 || job > maxJob || note > maxNote || len(b) < h.size || le.Uint32(b[4:]) != headSum(own, b[8:h.size]) {
		return h, false
	}
	h.sum, h.at = le.Uint32(b[8:]), int64(le.Uint64(b[12:]))
	h.id = executor.ID{
		Job: string(b[fixed : fixed+job]), Task: le.Uint32(b[28:]), Attempt: le.Uint32(b[32:]),
		Token: le.Uint64(b[20:]),
	}
	h.note = string(b[fixed+job : h.size])
	for n := range h.out {
		h.apart[n] = b[52]>>n&1 == 1
		size := le.Uint64(b[36+8*n:])
		if size > maxStream || !h.apart[n] && size > MaxInline {
			return h, false
		}
		h.out[n] = int64(size)
	}
	return h, true
}

// parseFrame reads a whole frame and its streams.
func parseFrame(b []byte, own salt) (h head, text [2][]byte, ok bool) {
	if h, ok = parseHead(b, own); !ok || int64(len(b)) < h.total() {
		return h, text, false
	}
	first := int64(h.size) + h.inline(0)
	text[0], text[1] = b[h.size:first:first], b[first:h.total():h.total()]
	return h, text, h.matches(b[h.size:h.total()])
}

// matches reports whether these are the frame's streams.
func (h *head) matches(streams []byte) bool { return crc32.Checksum(streams, castagnoli) == h.sum }
