package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// entry returns a file of the content; it is inline if it is short enough.
func entry(path, content string) Entry {
	e := Entry{Path: path, Size: int64(len(content)), Hash: HashOf([]byte(content))}
	if len(content) <= MaxInline {
		e.Inline = []byte(content)
	}
	return e
}

// large returns a file whose content nobody has.
func large(path string, size int64) Entry {
	return Entry{Path: path, Size: size, Hash: HashOf([]byte(path))}
}

func encode(t *testing.T, entries ...Entry) []byte {
	t.Helper()
	b, err := EncodeManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readAll(r io.Reader) (entries []Entry, err error) {
	m := NewManifestReader(r)
	for {
		e, err := m.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			if _, again := m.Next(); again == nil || again.Error() != err.Error() {
				return nil, fmt.Errorf("behind %w came %w", err, again)
			}
			return nil, err
		}
		entries = append(entries, e)
	}
}

func same(a, b []Entry) bool {
	return slices.EqualFunc(a, b, func(a, b Entry) bool {
		return a.Path == b.Path && a.Executable == b.Executable && a.Blob() == b.Blob() &&
			(a.Inline == nil) == (b.Inline == nil) && bytes.Equal(a.Inline, b.Inline)
	})
}

// The canonical form must not change: its hash names directories that others keep.
func TestManifestGolden(t *testing.T) {
	run := entry("run.sh", "#!/bin/sh\n")
	run.Executable = true
	b := encode(t, entry("a", ""), large("data/big", 1<<20), run)
	want := "cloudshare files 1\n\x01a\x02\x00\x08data/big\x00\x80\x80\x40" + string(b[36:68]) + "\x06run.sh\x03\x0a#!/bin/sh\n\x00"
	if string(b) != want {
		t.Errorf("%q\nwant %q", b, want)
	}
	const hash = "5ad84c4b169517783b356037e63d2c6d1a9313676cf51b7655592ad88115a990"
	if got := HashOf(b).String(); got != hash {
		t.Errorf("its hash is %s", got)
	}
	if none := encode(t); string(none) != manifestLine+"\x00" {
		t.Errorf("of nothing: %q", none)
	}
}

// genEntries draws a directory.
func genEntries(rt *rapid.T) []Entry {
	path := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-c!ü.]{1,3}x`), 1, 3).Draw(rt, "names"), "/")
	})
	paths := rapid.SliceOfNDistinct(path, 0, 12, rapid.ID).Draw(rt, "paths")
	slices.SortFunc(paths, ComparePaths)
	var entries []Entry
	for i, p := range paths {
		if i > 0 && checkApart(entries[len(entries)-1].Path, p) != nil {
			continue
		}
		size := rapid.SampledFrom([]int{0, 1, 200, MaxInline, MaxInline + 1}).Draw(rt, "size")
		e := entry(p, strings.Repeat("x", size))
		e.Executable = rapid.Bool().Draw(rt, "executable")
		entries = append(entries, e)
	}
	return entries
}

func TestManifestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := genEntries(rt)
		b, err := EncodeManifest(entries)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := readAll(iotest.HalfReader(bytes.NewReader(b)))
		if err != nil || !same(got, entries) {
			rt.Fatalf("%v: %v", err, got)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(rt, "cut")
		if _, err = readAll(bytes.NewReader(b[:cut])); !errors.Is(err, ErrManifest) {
			rt.Fatalf("cut off at %d of %d: %v", cut, len(b), err)
		}
		if _, err = readAll(bytes.NewReader(append(b, 0))); !errors.Is(err, ErrManifest) {
			rt.Fatalf("with a byte behind its end: %v", err)
		}
	})
}

func TestManifestRefuses(t *testing.T) {
	wrong := entry("a", "content")
	wrong.Hash[0]++
	outside := entry("a", "content")
	outside.Inline = nil
	var tooMuch []Entry
	for n := range MaxTask/MaxFile + 1 {
		tooMuch = append(tooMuch, large(fmt.Sprint(n), MaxFile))
	}
	inside := Entry{Path: "a", Size: MaxInline + 1, Inline: make([]byte, MaxInline+1)}
	inside.Hash = HashOf(inside.Inline)
	for name, c := range map[string]struct {
		entries []Entry
		want    error
	}{
		"a path that leads out":         {[]Entry{entry("../a", "")}, ErrPath},
		"a path twice":                  {[]Entry{entry("a", ""), entry("a", "")}, ErrOverlap},
		"a file that is a folder":       {[]Entry{entry("a", ""), entry("a/b", "")}, ErrOverlap},
		"no order":                      {[]Entry{entry("b", ""), entry("a", "")}, ErrManifest},
		"no order: a folder and a file": {[]Entry{entry("a/b", ""), entry("a", "")}, ErrManifest},
		"a size below zero":             {[]Entry{large("a", -1)}, ErrSize},
		"a file too large":              {[]Entry{large("a", MaxFile+1)}, ErrSize},
		"too much in all":               {tooMuch, ErrTooMany},
		"another hash":                  {[]Entry{wrong}, ErrManifest},
		"a short content outside":       {[]Entry{outside}, ErrManifest},
		"a long content inside":         {[]Entry{inside}, ErrManifest},
	} {
		if _, err := EncodeManifest(c.entries); !errors.Is(err, c.want) {
			t.Errorf("%s, written: %v", name, err)
		}
		b := []byte(manifestLine)
		for i := range c.entries {
			b = appendEntry(b, &c.entries[i])
		}
		_, err := readAll(bytes.NewReader(append(b, 0)))
		switch {
		case name == "another hash": // that of the content is read, not said
			if err != nil {
				t.Errorf("%s, read: %v", name, err)
			}
		case errors.Is(c.want, ErrSize), name == "a long content inside":
			if !errors.Is(err, ErrManifest) {
				t.Errorf("%s, read: %v", name, err)
			}
		case !errors.Is(err, c.want):
			t.Errorf("%s, read: %v", name, err)
		}
	}
}

// Bytes that say the same in another way are refused: a directory has one hash.
func TestManifestIsCanonical(t *testing.T) {
	for _, bad := range []string{
		"", "cloudshare files 2\n\x00", manifestLine, manifestLine + "\x80\x00", // a long zero
		manifestLine + "\x81\x00a\x02\x00\x00", manifestLine + "\x01a\x02\x80\x00\x00", manifestLine + "\x01a\x04\x00\x00",
		manifestLine + "\x01a\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", manifestLine + "\xff\xff\xff\xff\x0f",
	} {
		if _, err := readAll(strings.NewReader(bad)); !errors.Is(err, ErrManifest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	failed := errors.New("no more")
	cut := io.MultiReader(strings.NewReader(manifestLine), iotest.ErrReader(failed))
	if _, err := readAll(cut); !errors.Is(err, failed) {
		t.Errorf("a reader's own error: %v", err)
	}
}

// The bounds of a manifest hold for its writer and its reader.
func TestManifestBounds(t *testing.T) {
	w := NewManifestWriter(io.Discard)
	for i := range MaxEntries {
		if err := w.Add(large(fmt.Sprintf("f%06d", i), MaxInline+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Add(large("g", MaxInline+1)); !errors.Is(err, ErrTooMany) {
		t.Errorf("one file more than %d: %v", MaxEntries, err)
	}
	folder := strings.Repeat(strings.Repeat("d", 239)+"/", 4)
	w = NewManifestWriter(io.Discard)
	var err error
	n := 0
	for ; err == nil; n++ {
		err = w.Add(large(fmt.Sprintf("%sf%06d", folder, n), MaxInline+1))
	}
	if !errors.Is(err, ErrTooMany) || n < 30_000 || n > 35_000 {
		t.Errorf("long paths: %v behind %d", err, n)
	}
}

// Of many short files the first stand in the manifest, up to a bound, and the others outside, always the same.
func TestManifestInlinesTheFirst(t *testing.T) {
	var b bytes.Buffer
	w := NewManifestWriter(&b)
	content := strings.Repeat("x", 10_240)
	inside := 0
	for i := range 3000 {
		e := entry(fmt.Sprintf("f%06d", i), content)
		if !w.Inlines(e.Size) {
			e.Inline = nil
		} else {
			inside++
		}
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || inside != MaxInlineSum/10_240 || w.Sum() != 3000*10_240 {
		t.Errorf("%v, %d inside, %d bytes", err, inside, w.Sum())
	}
	if got, err := readAll(&b); err != nil || len(got) != 3000 {
		t.Errorf("%d, %v", len(got), err)
	}
}

// More than a manifest may take is not read.
func TestManifestTooLong(t *testing.T) {
	part := func(n int) []byte {
		e := large(fmt.Sprintf("%sf%06d", strings.Repeat(strings.Repeat("d", 239)+"/", 4), n), MaxInline+1)
		return appendEntry(nil, &e)
	}
	var b bytes.Buffer
	b.WriteString(manifestLine)
	for n := 0; b.Len() <= MaxManifest+1<<20; n++ {
		b.Write(part(n))
	}
	if _, err := readAll(&b); !errors.Is(err, ErrTooMany) || b.Len() < 1<<19 {
		t.Errorf("%v, %d bytes left", err, b.Len())
	}
}
