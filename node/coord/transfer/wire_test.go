package transfer

import (
	"bufio"
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Foreign requests are read within bounds, and what is read is written alike.
func FuzzRequest(f *testing.F) {
	p := Request{Blob: Blob{Attempt: ours, What: Output, Hash: [32]byte{9}, Size: MaxBlobBytes}, Index: 1 << 40}
	p.Offset, p.Length = MaxBlobBytes-PieceBytes, PieceBytes
	q := p
	q.Attempt, q.What, q.Offset = theirs, Input, 0
	f.Add(appendRequest(nil, 1<<40, []Request{p}))
	f.Add(appendRequest(nil, 1<<40, []Request{p, p, q, p}))
	f.Add([]byte{0, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 200))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y parser
		parts, err := x.parse(b)
		if err != nil {
			return
		}
		for i := range parts {
			p := &parts[i]
			if p.Length < 1 || p.Length > PieceBytes || p.Offset < 0 || p.Offset > p.Size-p.Length || p.What == 0 {
				t.Fatalf("%+v", p)
			}
		}
		written := appendRequest(nil, parts[0].Index, parts)
		again, err := y.parse(written)
		if err != nil || !reflect.DeepEqual(again, parts) || len(parts) > maxParts || len(written) > maxRequest {
			t.Fatalf("%+v becomes %+v, %v", parts, again, err)
		}
	})
}

// The largest request fits its frame.
func TestLargestRequest(t *testing.T) {
	p := Request{Blob: Blob{Attempt: ours, What: 255, Size: -1}, Index: 1<<64 - 1, Offset: -1, Length: -1}
	a := &p.Attempt
	a.Job = command.JobID{Site: strings.Repeat("x", maxSite), Num: 1<<64 - 1}
	a.Task, a.Attempt, a.Token = 1<<32-1, 1<<32-1, 1<<64-1
	parts := make([]Request, maxParts)
	for i := range parts {
		p.Attempt.Task--
		parts[i] = p
	}
	if n := len(appendRequest(nil, p.Index, parts)); n > maxRequest || n < maxRequest*9/10 {
		t.Errorf("%d bytes, the limit is %d", n, maxRequest)
	}
}

// Whatever a peer answers, a part gets its bytes, a refusal or an error, and no byte stands behind it.
func FuzzAnswer(f *testing.F) {
	frame := func(code byte, body []byte) []byte {
		return relay.EndFrame(append(append(relay.Frame(nil), code), body...))
	}
	text := bytes.Repeat([]byte("a line of text\n"), 100)
	f.Add(frame(codeRaw, text), len(text))
	f.Add(frame(codeZstd, compress(nil, text)), len(text))
	f.Add(frame(codeZstd, compress(nil, make([]byte, 10<<20))), 2000) // a bomb
	f.Add(frame(codeRefused, []byte{byte(Gone)}), 10)
	f.Add(frame(codeRefused, []byte{0}), 10)
	f.Add(frame(7, nil), 10)
	f.Add([]byte{0, 0, 0, 0, 0}, 10)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, codeZstd, 1}, 600_000)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n = min(max(n, 1), 3*chunkBytes)
		room := bytes.Repeat([]byte{0xa5}, n+1000)
		l := &link{in: bufio.NewReaderSize(bytes.NewReader(b), 4<<10)}
		arrived := 0
		refusal, err := l.readPart(room[:n], func(k int) { arrived += k })
		if !bytes.Equal(room[n:], bytes.Repeat([]byte{0xa5}, 1000)) {
			t.Fatal("bytes behind the part")
		}
		if err == nil && refusal == Granted && arrived != n || arrived > n {
			t.Fatalf("%d bytes of %d", arrived, n)
		}
	})
}

// Any frame of requests that a server is sent is read within its bound.
func FuzzReadRequest(f *testing.F) {
	f.Add(relay.EndFrame(append(relay.Frame(nil), 1, 2, 3)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0xa0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readRequest(bufio.NewReaderSize(bytes.NewReader(b), 16), nil)
		if len(got) > maxRequest || err == nil && !bytes.Equal(got, b[4:4+len(got)]) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}
