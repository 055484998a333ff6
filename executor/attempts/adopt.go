package attempts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// lacks are the errors of a machine that has too little of something now. They tell
// nothing of the file or folder that was asked for.
var lacks = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN, syscall.EINTR, syscall.ENOSPC,
	syscall.EDQUOT,
}

// IsPassing reports whether an error says that the machine lacks something now and may have it later.
func IsPassing(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && slices.Contains(lacks, number)
}

// Bounds of trying again what the machine lacks something for, at a start.
const (
	adoptPatience = 5 * time.Second // for all folders together
	adoptPause    = 20 * time.Millisecond
)

// Adoption is how a handler adopts what is in its folder at a start.
type Adoption struct {
	Dir  string
	What string // everything in Dir is one
	// One adopts what has that name. It is called again after an error of IsPassing.
	One func(name string) error
	// GiveUp, if set, is called before one is passed over that cannot be adopted.
	GiveUp func(name string)
}

// AdoptEach adopts everything in the folder. What cannot be adopted keeps no broker from
// its start: it is put aside, or left in its place if that is no fault of its own.
func (a *Aside) AdoptEach(ctx context.Context, x Adoption) error {
	again := retry{ctx: ctx}
	var entries []os.DirEntry
	err := again.do(func() (err error) {
		entries, err = os.ReadDir(x.Dir)
		return err
	})
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	for _, e := range entries {
		if err = ctx.Err(); err != nil {
			return fmt.Errorf("adopt: %w", err)
		}
		if err = again.do(func() error { return x.One(e.Name()) }); err != nil {
			a.passOver(x, e.Name(), err)
		}
	}
	return nil
}

// passOver takes what cannot be adopted out of the way.
func (a *Aside) passOver(x Adoption, name string, err error) {
	if x.GiveUp != nil {
		x.GiveUp(name)
	}
	path := filepath.Join(x.Dir, name)
	err = fmt.Errorf("adopt %s %s: %w", x.What, name, err)
	if !IsPassing(err) {
		a.Put(path, err)
		return
	}
	a.log.Warn().AnErr("why", err).Str("path", path).
		Msg("it cannot be read now, and is left where it is: see to the limits of open files and memory, then start the broker again")
}

// retry does something again as long as the machine lacks something, until its patience
// ends.
type retry struct {
	ctx   context.Context //nolint:containedctx // of one call of AdoptEach
	until time.Time       // zero = nothing has failed yet
}

func (r *retry) do(f func() error) error {
	for pause := adoptPause; ; pause *= 2 {
		err := f()
		if !IsPassing(err) {
			return err
		}
		if r.until.IsZero() {
			r.until = time.Now().Add(adoptPatience)
		}
		wait := min(pause, time.Until(r.until))
		if wait <= 0 {
			return err
		}
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return err
		}
	}
}
