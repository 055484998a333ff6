package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node/files"
)

// cutting is a way to a server that hangs up after each so many bytes of a client.
type cutting struct {
	net.Listener
	to   string
	most int64
	cuts atomic.Int64
}

func newCutting(t *testing.T, to string, most int64) *cutting {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutting{Listener: l, to: to, most: most}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(conn)
		}
	}()
	return c
}

func (c *cutting) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}()
	if n, _ := io.CopyN(to, from, c.most); n == c.most {
		c.cuts.Add(1)
	}
	_ = to.Close()
}

func newClient(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.New("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestClientResumesUploads over a way that is cut again and again, and sends nothing of what is there.
func TestClientResumesUploads(t *testing.T) {
	s := newSite(t)
	content := randomBytes(3*files.PieceBytes + 99)
	b := files.BlobOf(content)
	way := newCutting(t, s.Addr(), files.PieceBytes+100_000)
	last := int64(-1)
	err := newClient(t, way.Addr().String()).Upload(t.Context(), b.Hash.String(), bytes.NewReader(content), b.Size,
		func(n int64) { last = n })
	if err != nil || last != b.Size || way.cuts.Load() < 2 {
		t.Errorf("%d of %d bytes, %d cuts: %v", last, b.Size, way.cuts.Load(), err)
	}
	c := newClient(t, s.Addr())
	got, err := c.OpenBlob(t.Context(), b.Hash.String())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if back, err := io.ReadAll(got); err != nil || !bytes.Equal(back, content) {
		t.Errorf("%d bytes: %v", len(back), err)
	}
	calls := 0
	err = c.Upload(t.Context(), b.Hash.String(), bytes.NewReader(nil), b.Size, func(int64) { calls++ })
	if err != nil || calls != 1 {
		t.Errorf("what is there: %d answers, %v", calls, err)
	}
	var p *client.Problem
	err = c.Upload(t.Context(), files.HashOf([]byte("right")).String(), strings.NewReader("wrong"), 5, nil)
	if !errors.As(err, &p) || p.Status != 422 {
		t.Errorf("wrong bytes: %v", err)
	}
}

// TestClientMovesFiles there and back.
func TestClientMovesFiles(t *testing.T) {
	s, big := newResults(t)
	c, ctx := newClient(t, s.Addr()), t.Context()
	small, none := files.BlobOf([]byte("small")).Hash.String(), files.HashOf(nil).String()
	if err := c.PutBlob(ctx, small, strings.NewReader("small"), 5); err != nil {
		t.Error(err)
	}
	missing, err := c.MissingBlobs(ctx, []string{small, none})
	if err != nil || len(missing) != 1 || missing[0] != none {
		t.Errorf("%v %v", missing, err)
	}
	if err = c.PutBlob(ctx, none, strings.NewReader(""), 0); err != nil {
		t.Errorf("an empty file: %v", err)
	}
	listed := ""
	for f, err := range c.Files(ctx, "site-1.1", client.FileQuery{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		listed += f.Path + " "
	}
	if listed != "empty out/a.csv out/b.bin xrun only " {
		t.Error(listed)
	}
	for _, err := range c.Files(ctx, "site-1.9", client.FileQuery{}) {
		if err == nil {
			t.Error("files of no job")
		}
	}
	file, err := c.OpenFile(ctx, "site-1.1", 17, "out/b.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := io.ReadAll(file); err != nil || string(got) != big {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	task := uint32(41)
	archive, err := c.Tar(ctx, "site-1.1", &task)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if got, err := untar(archive); err != nil || got != "only 644 0 3, " {
		t.Errorf("%s %v", got, err)
	}
	var p *client.Problem
	if _, err = c.Import(ctx, "https://example.org/x", ""); !errors.As(err, &p) || p.Status != 422 {
		t.Errorf("import: %v", err)
	}
}

// TestClientImports until the file is there.
func TestClientImports(t *testing.T) {
	s, host, answer := newImporting(t)
	c := newClient(t, s.Addr())
	got, err := c.Import(t.Context(), host+"/a", "")
	if err != nil || got.Blob != nil || got.Size != -1 {
		t.Errorf("%+v %v", got, err)
	}
	close(answer)
	for err == nil && got.Blob == nil {
		got, err = c.Import(t.Context(), host+"/a", "")
	}
	if err != nil || got.Blob.SHA256 != files.HashOf([]byte("/a")).String() || got.Received != 2 {
		t.Errorf("%+v %v", got, err)
	}
}
