package carry

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
)

// Check says what is wrong with a stream of what a task has left; most bounds its files' bytes.
func Check(r io.Reader, most int64) error {
	s, last := readFrames(r), ""
	for {
		f, err := s.next()
		switch {
		case err != nil:
			return err
		case f.End:
			return s.atEnd()
		case s.bytes > most:
			return fmt.Errorf("%w: more than %d bytes", ErrGarbled, most)
		case f.File != nil && last != "" && executor.ComparePaths(last, f.File.Path) >= 0:
			return fmt.Errorf("%w: %q comes after %q", ErrGarbled, f.File.Path, last)
		case f.File != nil:
			last = f.File.Path
		}
	}
}

// Give gives a sink what [executor.Collector] says, of what a task has left; open opens that stream. What want names
// and the stream does not hold, was not asked for when the task was begun.
func Give(
	ctx context.Context, open func() (io.ReadSeekCloser, error), want executor.Outputs, sink executor.OutputSink,
) error {
	globs, err := want.ParseGlobs()
	if err != nil {
		return err
	}
	in, err := open()
	if err != nil {
		return fmt.Errorf("%w: %w", executor.ErrUnreadable, err)
	}
	defer in.Close()
	g := &giver{ctx: ctx, globs: globs, want: want}
	if err = g.read(in, nil); err != nil {
		return err
	}
	if _, err = in.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", executor.ErrUnreadable, err)
	}
	return g.read(in, sink)
}

// giver goes through a stream twice: all bounds are looked at before anything is given.
type giver struct {
	ctx   context.Context //nolint:containedctx // of one call
	globs []executor.Glob
	want  executor.Outputs
	files int
	bytes int64
}

func (g *giver) read(in io.Reader, sink executor.OutputSink) error {
	s := readFrames(in)
	for {
		if g.ctx.Err() != nil {
			return context.Cause(g.ctx)
		}
		f, err := s.next()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", executor.ErrUnreadable, err)
		case f.End:
			return nil
		case f.Fault != nil:
			return f.Fault.err()
		case f.Missing != nil && slices.Contains(g.want.Paths, f.Missing.Glob):
			return f.Missing
		case f.Skipped != nil && sink != nil:
			sink.Skipped(string(f.Skipped.Name), f.Skipped.Why)
		case f.File != nil && g.matches(f.File.Path):
			if err = g.file(*f.File, s.content(), sink); err != nil {
				return err
			}
		}
	}
}

func (g *giver) matches(path string) bool {
	return slices.ContainsFunc(g.globs, func(w executor.Glob) bool { return w.Match(path) })
}

func (g *giver) file(f executor.OutputFile, content io.Reader, sink executor.OutputSink) error {
	if sink != nil {
		if err := sink.File(f, content); err != nil {
			return fmt.Errorf("output %q: %w", f.Path, err)
		}
		return nil
	}
	g.files, g.bytes = g.files+1, g.bytes+f.Size
	switch most := cmp.Or(g.want.MaxFiles, executor.MaxFiles); {
	case g.files > most:
		return &executor.OutputBoundError{What: "files", Most: int64(most)}
	case g.want.MaxBytes > 0 && g.bytes > g.want.MaxBytes:
		return &executor.OutputBoundError{What: "bytes", Most: g.want.MaxBytes}
	}
	return nil
}
