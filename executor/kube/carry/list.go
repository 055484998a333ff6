package carry

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/executor/staging"
)

// Item is a file that a task is to find, and how long it was when that was looked up.
type Item struct {
	executor.File
	Size int64
}

// List are the files of a task. As a stream they are the same bytes each time, so that one which was cut goes on.
type List []Item

// ListOf looks files up.
func ListOf(files []executor.File) (l List, bytes int64, err error) {
	l = make(List, len(files))
	for i := range files {
		if l[i].File = files[i]; files[i].Source == "" {
			l[i].Size = int64(len(files[i].Content))
		} else {
			st, err := os.Lstat(files[i].Source)
			if err != nil {
				return nil, 0, fmt.Errorf("file %q: %w", files[i].Path, err)
			}
			l[i].Size = st.Size()
		}
		bytes += l[i].Size
	}
	return l, bytes, nil
}

// WriteFrom writes the stream from a byte on.
func (l List) WriteFrom(ctx context.Context, w io.Writer, offset int64) error {
	for i := range l {
		item := &l[i]
		head := executor.OutputFile{Path: item.Path, Size: item.Size, Executable: item.Executable}
		line, err := (&frame{File: &head}).line()
		if err != nil {
			return err
		}
		if offset >= int64(len(line))+item.Size {
			offset -= int64(len(line)) + item.Size
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if offset, err = writeRest(w, line, offset); err != nil {
			return err
		}
		if err = item.writeFrom(w, offset); err != nil {
			return fmt.Errorf("file %q: %w", item.Path, err)
		}
		offset = 0
	}
	line, err := (&frame{End: true}).line()
	if err == nil {
		_, err = writeRest(w, line, offset)
	}
	return err
}

// writeRest writes a line from a byte on, and returns what is left of the offset behind it.
func writeRest(w io.Writer, line []byte, offset int64) (int64, error) {
	if offset >= int64(len(line)) {
		return offset - int64(len(line)), nil
	}
	_, err := w.Write(line[offset:])
	return 0, err
}

func (f *Item) writeFrom(w io.Writer, offset int64) error {
	if f.Source == "" {
		_, err := w.Write(f.Content[offset:])
		return err
	}
	in, err := outputs.OpenRegular(f.Source, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err = in.Seek(offset, io.SeekStart); err == nil {
		_, err = io.CopyN(w, in, f.Size-offset)
	}
	return err
}

// put reads a stream of a task's files into a folder that holds none.
func put(r io.Reader, to *staging.Folder) error {
	s := readFrames(r)
	for {
		f, err := s.next()
		switch {
		case err != nil:
			return err
		case f.End:
			return nil
		case f.File == nil:
			return fmt.Errorf("%w: a frame that is no file's", ErrGarbled)
		}
		if err = to.Put(f.File.Path, f.File.Executable, s.content()); err != nil {
			return fmt.Errorf("put file %q: %w", f.File.Path, err)
		}
	}
}
