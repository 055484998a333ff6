// Package statefile is one file that holds a federation's replicated state, on
// its way from one coordination backend to another: step 3 of a job's way moves
// as a whole.
//
// The file describes itself: its first line names the format, its second one is
// a [Header] in JSON, so `head -n 2` shows both; the state machine's snapshot
// follows, and the SHA-256 of all that stands before it. The package knows no
// backend: those make and take the snapshot.
package statefile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Errors of Open and Create; each message names the file and the remedy.
var (
	// ErrNotState: it is no file of this kind.
	ErrNotState = errors.New("not a federation's state")
	// ErrNewFormat: a later version wrote it.
	ErrNewFormat = errors.New("a later format")
	// ErrDamaged: it is not what was written.
	ErrDamaged = errors.New("damaged")
	// ErrExists: there is a file of that name already.
	ErrExists = errors.New("file exists")
)

const (
	// Format is the one that this code reads and writes.
	Format = 1

	magic    = "cloudshare federation state "
	maxFirst = len(magic) + 12 // bytes of the first line
	// MaxHeader bounds the second line, in bytes.
	MaxHeader = 64 << 10
)

// Header says whose state it is, and of which moment.
type Header struct {
	// ID of the export, random: all that one export left behind bears it.
	ID string `json:"id"`
	// Federation and Lineage are 16 bytes in hex; Lineage is the epoch's, and ""
	// in the first one.
	Federation string `json:"federation"`
	Epoch      uint64 `json:"epoch"`
	Lineage    string `json:"lineage,omitempty"`
	// Entry is the last one applied, StateHash the state's hash after it, Term the
	// greatest term of a leader that the state has seen.
	Entry     uint64 `json:"entry"`
	StateHash string `json:"state_hash"`
	Term      uint64 `json:"term"`
	// Backend that it comes from, and the site whose copy it is.
	Backend string `json:"backend"`
	Site    string `json:"site"`
	// LastTerm and LastIndex are of the newest stored log entry, Voters those who
	// voted then, where every voter has a copy of its own; else Voters is empty,
	// and the state is the newest that there is.
	LastTerm  uint64   `json:"last_term,omitempty"`
	LastIndex uint64   `json:"last_index,omitempty"`
	Voters    []string `json:"voters,omitempty"`
	// For people.
	ExportedAt time.Time `json:"exported_at"`
	Version    string    `json:"version"` // of the program that wrote it
}

// Content is what writes the state: a coord.Snapshot.
type Content interface {
	Write(w io.Writer) error
}

// Create writes a file that was not there before; a crash leaves none or the
// whole one. Errors: ErrExists.
func Create(path string, h Header, state Content) error {
	if err := Absent(path); err != nil {
		return err
	}
	if err := create(path, h, state); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Absent returns ErrExists if there is something of that name.
func Absent(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%w: %s: choose another name", ErrExists, path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for %s: %w", path, err)
	}
	return nil
}

func create(path string, h Header, state Content) error {
	head, err := json.Marshal(h)
	switch {
	case err != nil:
		return fmt.Errorf("encode header: %w", err)
	case len(head) >= MaxHeader:
		return fmt.Errorf("header of %d bytes, at most %d", len(head), MaxHeader)
	}
	part := path + ".new"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 256<<10)
	_, err = fmt.Fprintf(w, "%s%d\n%s\n", magic, Format, head)
	if err == nil {
		err = state.Write(w)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = f.Write(sum.Sum(nil))
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return syncDir(filepath.Dir(path))
}

// Rename gives a file another name for good.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// File is an open one that was found whole.
type File struct {
	Header
	Path string

	f          *os.File
	start, end int64 // of the snapshot
}

// Open opens a file and checks all of it. Errors: those of os.Open, ErrNotState,
// ErrNewFormat, ErrDamaged.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	file := &File{Path: path, f: f}
	if err := file.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return file, nil
}

// Close gives the file back.
func (f *File) Close() error { return f.f.Close() }

// State reads the snapshot from its beginning; several readers may read at once.
func (f *File) State() io.Reader { return io.NewSectionReader(f.f, f.start, f.end-f.start) }

func (f *File) check() error {
	info, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is no regular file", ErrNotState)
	}
	r := bufio.NewReaderSize(f.f, MaxHeader)
	first, err := checkFormat(r)
	if err != nil {
		return err
	}
	head, err := r.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("%w: it has no header: copy it again from where it was exported", ErrDamaged)
	}
	head = bytes.Clone(head)
	f.start, f.end = int64(len(first)+len(head)), info.Size()-sha256.Size
	if err := f.checkSum(); err != nil {
		return err
	}
	return f.decode(head)
}

// checkFormat reads the first line.
func checkFormat(r *bufio.Reader) (line string, err error) {
	begin, err := r.Peek(maxFirst)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read: %w", err)
	}
	line, _, whole := strings.Cut(string(begin), "\n")
	number, ours := strings.CutPrefix(line, magic)
	format, err := strconv.ParseUint(number, 10, 31)
	switch {
	case !ours || !whole || err != nil:
		return "", fmt.Errorf("%w: give a file that `cloudshare state export` wrote", ErrNotState)
	case format != Format:
		return "", fmt.Errorf("%w: it is of format %d, this version reads %d: take the version that wrote it", ErrNewFormat, format, Format)
	}
	_, err = r.Discard(len(line) + 1)
	return line + "\n", err
}

// checkSum reads the file to its end.
func (f *File) checkSum() error {
	if f.end <= f.start {
		return fmt.Errorf("%w: it ends too early: copy it again from where it was exported", ErrDamaged)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f.f, 0, f.end)); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	var want [sha256.Size]byte
	if _, err := f.f.ReadAt(want[:], f.end); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if [sha256.Size]byte(sum.Sum(nil)) != want {
		return fmt.Errorf("%w: its checksum is another one: copy it again from where it was exported", ErrDamaged)
	}
	return nil
}

// decode reads the header of a whole file.
func (f *File) decode(head []byte) error {
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	err := d.Decode(&f.Header)
	switch {
	case err != nil:
		return fmt.Errorf("%w: header: %w: take the version that wrote it", ErrNewFormat, err)
	case !isID(f.ID) || !isID(f.Federation) || f.Lineage != "" && !isID(f.Lineage) || f.Site == "" || f.Backend == "":
		return fmt.Errorf("%w: its header lacks something", ErrDamaged)
	}
	return nil
}

func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == 16
}
