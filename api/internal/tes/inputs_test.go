package tes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
)

// storeOf plays a store that has what was put.
type storeOf struct {
	mu   sync.Mutex
	puts []string
}

var errTooMuch = errors.New("too much")

func (s *storeOf) put(_ context.Context, _ string, r io.Reader, limit int64) (files.Blob, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errTooMuch
	}
	if err != nil {
		return files.Blob{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts = append(s.puts, string(text))
	return files.BlobOf(text), nil
}

func treeOf(t *testing.T, contents map[string]string) *placed {
	t.Helper()
	dir := t.TempDir()
	for name, content := range contents {
		at := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return &placed{Root: exports.Root{Name: dir, Folder: dir}, Rel: "."}
}

// TestSmallFilesStandInTheManifestAlone: what is in it is not put into the store as well.
func TestSmallFilesStandInTheManifestAlone(t *testing.T) {
	large := strings.Repeat("l", files.MaxInline+1)
	from := treeOf(t, map[string]string{"a": "small", "d/b": large, "d/c": "", "e": strings.Repeat("m", files.MaxInline)})
	s := &storeOf{}
	b := &bringer{put: s.put, left: 1 << 30}
	in := map[string]any{}
	if err := b.storeTree(t.Context(), from, in); err != nil {
		t.Fatal(err)
	}
	if len(s.puts) != 2 || s.puts[0] != large {
		t.Fatalf("%d files were put", len(s.puts))
	}
	inline := ""
	for e, err := range files.NewManifestReader(strings.NewReader(s.puts[1])).All() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Inline != nil {
			inline += e.Path + " "
		}
	}
	if want := files.BlobOf([]byte(s.puts[1])); inline != "a d/c e " || in["manifest"] != want.Hash.String() || in["size"] != want.Size {
		t.Errorf("%q %v", inline, in)
	}
	if left := int64(1<<30) - b.left; left != int64(5+len(large)+files.MaxInline) {
		t.Errorf("counted are %d bytes", left)
	}
}

// TestManifestIsWrittenAsItIsRead: a store that reads no more than the beginning has no more of the folder read: it is
// not in memory.
func TestManifestIsWrittenAsItIsRead(t *testing.T) {
	contents := map[string]string{}
	for i := range 300 {
		contents[fmt.Sprintf("f%03d", i)] = strings.Repeat("x", files.MaxInline)
	}
	from := treeOf(t, contents)
	failed := errors.New("the disk is full")
	b := &bringer{left: 1 << 30, put: func(_ context.Context, _ string, r io.Reader, _ int64) (files.Blob, error) {
		_, err := io.ReadFull(r, make([]byte, 1000))
		return files.Blob{}, errors.Join(failed, err)
	}}
	err := b.storeTree(t.Context(), from, map[string]any{})
	if read := 1<<30 - b.left; !errors.Is(err, failed) || read > 10*files.MaxInline {
		t.Errorf("%d bytes were read: %v", read, err)
	}
}

// TestBytesOfATaskAreBounded, of all its inputs together.
func TestBytesOfATaskAreBounded(t *testing.T) {
	from := treeOf(t, map[string]string{"a": strings.Repeat("a", 20_000), "b": strings.Repeat("b", 20_000)})
	file := *from
	file.Rel = "a"
	s := &storeOf{}
	b := &bringer{put: s.put, left: 50_000}
	if err := b.storeOne(t.Context(), &file, typeFile, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := b.storeOne(t.Context(), from, typeDirectory, map[string]any{}); !errors.Is(err, errTooMuch) {
		t.Errorf("%v, %d left", err, b.left)
	}
}

// TestBadNamesInAFolder are said in one line.
func TestBadNamesInAFolder(t *testing.T) {
	from := treeOf(t, map[string]string{"ok": "", "bad\nname": "x"})
	b := &bringer{put: (&storeOf{}).put, left: 1 << 30}
	err := wordInput(3, b.storeTree(t.Context(), from, map[string]any{}))
	var wrong *badTask
	if !errors.As(err, &wrong) || wrong.field != "inputs.3.url" || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q", err)
	}
}

// TestCancelledFolderEnds in the middle.
func TestCancelledFolderEnds(t *testing.T) {
	from := treeOf(t, map[string]string{"a": "", "b": ""})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCancelled)
	b := &bringer{put: (&storeOf{}).put, left: 1 << 30}
	if err := b.storeTree(ctx, from, map[string]any{}); !errors.Is(err, errCancelled) {
		t.Error(err)
	}
}
