package stageout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

const (
	// maxCollected is how many attempts are collected at a time: each has a disk busy.
	maxCollected = 8
	// collectTries is how often outputs are collected that this site cannot read or keep, longer apart each time.
	collectTries = 4
	firstPause   = time.Second
	// longestPause is between two looks whether this site's own store has room for a result.
	longestPause = time.Minute
)

// Order names an ended attempt and what is wanted of it.
type Order struct {
	ID      executor.ID
	Outputs executor.Outputs
	Result  executor.Result
	// Waits is told why outputs of this site's own task wait for room, one line for people, and again when that has
	// changed; nil = nobody listens.
	Waits func(why string)
}

// Outcome is what came of it. At most one of Failed and Lost is set.
type Outcome struct {
	Output command.Output // zero: nothing is kept
	Failed string         // the task has not left what it had to
	Lost   string         // this site cannot read or keep what it left; nothing is kept then
	Note   string         // how many outputs could not travel, and of what kinds; the rest is kept
	// Ended: there was no room for it, and nobody wants it any more.
	Ended bool
}

// Collect keeps what an attempt has left, durably: for its owner, or as a result of this site's own job, which waits
// for room if there is none. The error is ctx's: nothing is known then.
func (k *Keeper) Collect(ctx context.Context, c executor.Collector, o Order) (out Outcome, err error) {
	w, leave := k.join(ctx, c, &o)
	defer leave()
	wait := firstPause
	for try := 1; ; {
		out, err = k.collect(ctx, w)
		switch {
		case ctx.Err() != nil:
			return Outcome{}, context.Cause(ctx)
		case err == nil:
			return out, nil
		case w.own && o.Result.Succeeded() && errors.Is(err, store.ErrFull):
			if out, over := w.await(err); over {
				return out, context.Cause(ctx)
			}
			continue
		case try == collectTries || errors.Is(err, executor.ErrUnknownAttempt),
			!o.Result.Succeeded() && errors.Is(err, store.ErrFull): // a failure waits for no room
			return Outcome{Lost: "its outputs could not be kept at its site: " + err.Error()}, nil
		}
		if errors.Is(err, store.ErrFull) {
			_ = k.makeRoom(ctx, files.MaxManifest) // what is left of it is small files; the next try tells
		}
		if err = k.pause(ctx, wait); err != nil {
			return Outcome{}, err
		}
		wait *= 2
		try++
	}
}

// collect is one try, when its turn comes.
func (k *Keeper) collect(ctx context.Context, w *waiter) (out Outcome, err error) {
	select {
	case k.collecting <- struct{}{}:
		defer func() { <-k.collecting }()
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	copied, err := w.look()
	if err != nil {
		return out, err
	}
	defer copied()
	out, err = k.tryCollect(ctx, w.c, *w.o)
	if errors.Is(err, store.ErrFull) {
		w.inVain()
	}
	return out, err
}

// tryCollect is one try; the error is this site's trouble.
func (k *Keeper) tryCollect(ctx context.Context, c executor.Collector, o Order) (out Outcome, err error) {
	ref, err := node.AttemptOf(o.ID)
	if err != nil {
		return out, err
	}
	own, began := ref.Job.Site == k.cfg.Site, k.cfg.Now()
	t := &taking{ctx: ctx, store: k.cfg.Store, at: store.OutgoingOf(ref.Job.Site), by: PinOf(o.ID), room: k.makeRoom}
	if own {
		t.at, t.room = store.OwnOf(k.cfg.UserOf(ref.Job.Num)), nil
	}
	succeeded := o.Result.Succeeded()
	out.Output, err = t.take(c, o.ID, wantOf(o, succeeded))
	out.Note = t.note()
	var missing *executor.MissingOutputError
	out.Failed = faultOf(err)
	if errors.As(err, &missing) && o.Outputs.When == executor.WhenAlways { // it has failed: what is there is kept
		succeeded = false
		out.Output, err = t.take(c, o.ID, wantOf(o, succeeded))
	}
	if out.Failed != "" && err != nil || faultOf(err) != "" { // this site's trouble is no excuse of the task's
		out.Output, err = command.Output{}, nil
	}
	switch {
	case err != nil || out.Output.IsZero():
	case own:
		err = k.keepResult(ref, out.Output)
	case t.files == 0 && !succeeded: // nobody has to come for nothing
		out.Output = command.Output{}
	default:
		err = k.add(ctx, Entry{ID: o.ID, Output: out.Output, KeptMs: k.cfg.Now().UnixMilli(), Succeeded: succeeded})
	}
	if err != nil || out.Output.IsZero() || own {
		k.cfg.Store.Unpin(PinOf(o.ID))
	}
	if own && (err != nil || out.Output.IsZero()) { // others' go at once, these would have the room for a day
		if bad := k.cfg.Store.Withdraw(began, t.put...); err != nil {
			err = errors.Join(err, bad)
		}
	}
	return out, err
}

// faultOf says that the task has not left what it had to, "" = that is not what the error says. All sites read it, so
// what cannot travel is not named.
func faultOf(err error) string {
	var missing *executor.MissingOutputError
	var bound *executor.OutputBoundError
	switch {
	case errors.As(err, &missing):
		return missing.Error()
	case errors.As(err, &bound):
		return bound.Error()
	}
	for _, kind := range []error{files.ErrPath, files.ErrTooMany, files.ErrOverlap} {
		if errors.Is(err, kind) {
			return "its outputs cannot travel: " + kind.Error()
		}
	}
	return ""
}

// wantOf returns what is collected of an attempt: of one that failed nothing is required.
func wantOf(o Order, succeeded bool) executor.Outputs {
	want := o.Outputs
	if !succeeded {
		want.Optional = append(append([]string(nil), want.Paths...), want.Optional...)
		want.Paths = nil
	}
	return want
}

// keepResult has a result of this site's own job kept by whoever keeps those.
func (k *Keeper) keepResult(ref command.AttemptRef, o command.Output) error {
	return k.cfg.KeepResult(ref.Job.Num, node.TaskResult{
		Task: ref.Task, Attempt: ref.Attempt, Manifest: files.Blob{Hash: o.Manifest, Size: o.Size}, Bytes: o.Bytes,
	})
}

// taking puts the files of one attempt into a place, and their manifest.
type taking struct {
	ctx     context.Context //nolint:containedctx // of one call of Collect, whose sink has none
	store   *store.Store
	at      store.Place
	by      string
	room    func(ctx context.Context, bytes int64) error // nil: whatever there is
	w       *files.ManifestWriter
	files   int         // in it
	put     []store.Ref // all that was
	skipped int         // how many outputs could not travel
	kinds   []string    // of those, each once
}

var _ executor.OutputSink = (*taking)(nil)

// take collects an attempt.
func (t *taking) take(c executor.Collector, id executor.ID, want executor.Outputs) (out command.Output, err error) {
	type put struct {
		blob files.Blob
		err  error
	}
	r, w := io.Pipe()
	manifest := make(chan put, 1)
	go func() {
		b, failed := t.store.Put(t.ctx, t.at, r, files.MaxManifest)
		_ = r.CloseWithError(failed) // who writes must not wait
		manifest <- put{b, failed}
	}()
	t.w, t.files, t.skipped, t.kinds = files.NewManifestWriter(w), 0, 0, nil
	if err = c.Collect(t.ctx, id, want, t); err == nil {
		err = t.w.Close()
	}
	_ = w.CloseWithError(err) // nil ends the manifest
	p := <-manifest
	if err == nil { // what ended the manifest was told to who collects
		err = p.err
	}
	if err != nil {
		return out, err
	}
	t.pin(p.blob)
	return command.Output{Manifest: p.blob.Hash, Size: p.blob.Size, Bytes: t.w.Sum()}, nil
}

// pin has a blob that was put stay.
func (t *taking) pin(b files.Blob) {
	r := store.Ref{Place: t.at, Hash: b.Hash}
	t.store.Pin(t.by, r)
	t.put = append(t.put, r)
}

// File implements executor.OutputSink.
func (t *taking) File(f executor.OutputFile, r io.Reader) error {
	if t.room != nil {
		if err := t.room(t.ctx, f.Size); err != nil {
			return err
		}
	}
	t.files++
	e := files.Entry{Path: f.Path, Executable: f.Executable, Size: f.Size}
	if t.w.Inlines(f.Size) {
		e.Inline = make([]byte, f.Size)
		if _, err := io.ReadFull(r, e.Inline); err != nil {
			return fmt.Errorf("read output %q: %w", f.Path, err)
		}
		e.Hash = files.HashOf(e.Inline)
		return t.w.Add(e)
	}
	b, err := t.store.Put(t.ctx, t.at, r, f.Size)
	switch {
	case err != nil:
		return fmt.Errorf("keep output %q: %w", f.Path, err)
	case b.Size != f.Size:
		return fmt.Errorf("keep output %q: %w", f.Path, executor.ErrOutputChanged)
	}
	t.pin(b)
	e.Hash = b.Hash
	return t.w.Add(e)
}

// Skipped implements executor.OutputSink. The name is forgotten: the note goes to all sites, and names of files are
// for the owner's and this one alone. why is a kind, and names none.
func (t *taking) Skipped(_, why string) {
	if t.skipped++; !slices.Contains(t.kinds, why) {
		t.kinds = append(t.kinds, why)
	}
}

// note says how many outputs could not travel, and of what kinds they are, "" = none.
func (t *taking) note() string {
	many := "outputs"
	switch t.skipped {
	case 0:
		return ""
	case 1:
		many = "output"
	case executor.MaxSkipped:
		many = "outputs or more"
	}
	return fmt.Sprintf("%d %s cannot travel: %s", t.skipped, many, strings.Join(t.kinds, ", "))
}
