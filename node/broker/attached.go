package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// exporter finds out which jobs have ended that have something attached, brings their files to where they go, and notes
// how they ended.
type exporter struct {
	*process
	b     *Broker
	book  *exports.Book
	ended *endedJobs
	work  chan struct{} // has one for each job whose files are under way
	// tasks is Broker.FindTasks.
	tasks func(ctx context.Context, id command.JobID, q node.TaskQuery) ([]node.Task, uint32, error)

	mu    sync.Mutex
	going map[uint64]bool          // guarded by mu
	slots map[string]chan struct{} // by user; guarded by mu
}

const (
	// exportsAtOnce is how many jobs' files are brought somewhere at a time.
	exportsAtOnce = 4
	// exportFor is for how long files are tried to be brought where they go, awaitFiles for how long those of a job
	// that has failed are waited for: they come home after its end.
	exportFor  = 10 * time.Minute
	awaitFiles = 30 * time.Second
	// exportPause is between the first two tries; it doubles to maxExportPause.
	exportPause    = time.Second
	maxExportPause = time.Minute
	// maxRecordBytes bounds a result that is kept with a job's end.
	maxRecordBytes = 1 << 20
)

// newExporter reads what earlier runs of the broker have left.
func newExporter(b *Broker) (*exporter, error) {
	book, err := exports.Open(b.cfg.Journal)
	if err != nil {
		return nil, err
	}
	x := &exporter{
		process: b.process, b: b, book: book, going: map[uint64]bool{}, work: make(chan struct{}, exportsAtOnce),
		tasks: b.FindTasks, slots: map[string]chan struct{}{},
	}
	x.ended = &endedJobs{
		process: b.process, b: b, book: book, take: x.look, kept: make(chan struct{}, 1),
		late: "ends of jobs with something attached are late: looking again in 10 s",
	}
	return x, nil
}

// hasAttached reports whether something is to be kept beside what a request submits.
func hasAttached(r node.Request) bool { return r.Attached != nil }

// resolve refuses requests for whose attachments there is no room. Like ownFiles.resolve, it returns what the core
// gets.
func (x *exporter) resolve(reqs []node.Request, reply func(int, node.Answer)) ([]node.Request, func(int, node.Answer)) {
	reqs = slices.Clone(reqs)
	for i := range reqs {
		r := &reqs[i]
		if r.Attached == nil {
			continue
		}
		r.Attached.User = r.User
		if err := x.book.Admit(r.Attached); err != nil && r.Refused == nil {
			r.Refused = err
		}
	}
	return reqs, func(i int, a node.Answer) {
		if r := &reqs[i]; r.Attached != nil && a.Err == nil && !a.Replayed {
			x.book.Keep(a.ID.Num, *r.Attached)
			x.ended.keep(a.ID.Num)
		}
		reply(i, a)
	}
}

// start looks after jobs until the broker ends.
func (x *exporter) start() { x.goroutine(x.watch) }

// ready waits until the state is as new as the federation's, and until it is known which results are here: before that
// those of tasks that have ended would seem lost. false: the broker ends before.
func (x *exporter) ready() bool {
	wait := []<-chan struct{}{x.b.registrar.current}
	if x.b.owned != nil {
		wait = append(wait, x.b.owned.loaded)
	}
	for _, known := range wait {
		select {
		case <-known:
		case <-x.ctx.Done():
			return false
		}
	}
	return true
}

// watch looks which jobs have ended that have something attached.
func (x *exporter) watch() {
	if x.ready() {
		x.ended.watch()
	}
}

// look has jobs looked after that have ended.
func (x *exporter) look(ended []uint64) error {
	for _, num := range ended {
		x.begin(num)
	}
	return nil
}

// begin looks after a job that has ended, unless somebody does.
func (x *exporter) begin(num uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.going[num] || !x.book.Has(num) {
		return
	}
	x.going[num] = true
	x.goroutine(func() {
		defer func() {
			x.mu.Lock()
			delete(x.going, num)
			x.mu.Unlock()
		}()
		x.finish(num)
	})
}

// finish brings the files of an ended job where they go, and notes its end.
func (x *exporter) finish(num uint64) {
	a, known := x.book.Find(num)
	if !known {
		return
	}
	end, err := x.endOf(num)
	if err != nil {
		return // the broker stops, or somebody looks again
	}
	neverBegan := end.State == fsm.TaskCancelled.String() && end.Started.IsZero()
	if (a.Record != "" || len(a.Exports) > 0) && !neverBegan {
		x.export(num, &a, &end)
	}
	if x.ctx.Err() != nil {
		return // it is done again
	}
	if err := x.book.End(num, &end); err != nil {
		x.log.Warn().Err(err).Uint64("job", num).Msg("the end of a job is not noted: trying again in 10 s")
	}
}

// endOf returns how a job has ended, as far as it is known still.
func (x *exporter) endOf(num uint64) (end node.AttachedEnd, err error) {
	id := command.JobID{Site: x.b.cfg.Site, Num: num}
	job := x.b.notify.lastOf(num)
	if x.ctx.Err() != nil {
		return end, x.ctx.Err()
	}
	end = node.AttachedEnd{
		State: job.State, Reason: job.Reason, Started: job.StartedAt, Ended: job.EndedAt, Created: job.SubmittedAt,
		Unbrought: job.Unbrought,
	}
	tasks, _, err := x.tasks(x.ctx, id, node.TaskQuery{Limit: 1})
	if err != nil && !errors.Is(err, node.ErrNotFound) {
		return end, err // it has an exit code, perhaps
	}
	if len(tasks) == 1 {
		t := &tasks[0]
		end.Site, end.Attempt, end.ExitCode, end.Signal = t.Site, t.Attempt, t.ExitCode, t.Signal
		if end.Reason == "" {
			end.Reason = t.Reason
		}
	}
	return end, nil
}

// export tries to bring files where they go until it has, or its time is over.
func (x *exporter) export(num uint64, a *node.Attached, end *node.AttachedEnd) {
	began := time.Now()
	for pause := exportPause; ; pause = min(2*pause, maxExportPause) {
		err := x.try(num, a, end)
		end.Why = ""
		if err != nil {
			end.Why = err.Error()
		}
		if err == nil || time.Since(began) >= x.patience(num, err) {
			return
		}
		select {
		case <-time.After(pause):
		case <-x.ctx.Done():
			return
		}
	}
}

// patience returns for how long files are tried that failed so.
func (x *exporter) patience(num uint64, why error) time.Duration {
	switch {
	case errors.Is(why, exports.ErrAgain), errors.Is(why, node.ErrNotReady):
		return exportFor
	case !errors.Is(why, node.ErrNotFound):
		return 0
	}
	id := command.JobID{Site: x.b.cfg.Site, Num: num}
	tasks, _, err := x.tasks(x.ctx, id, node.TaskQuery{Limit: 1})
	if err == nil && len(tasks) == 1 && tasks[0].FilesAway.Coming {
		return awaitFiles
	}
	return 0
}

// slotOf returns what has one while a user's files are under way: each user has one job's at a time, so that nobody's
// slow disk holds up the others'. There are as many as users that have had such jobs.
func (x *exporter) slotOf(user string) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.slots[user] == nil {
		x.slots[user] = make(chan struct{}, 1)
	}
	return x.slots[user]
}

// try brings files where they go once.
func (x *exporter) try(num uint64, a *node.Attached, end *node.AttachedEnd) error {
	own := x.slotOf(a.User)
	for _, slot := range []chan struct{}{own, x.work} {
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-x.ctx.Done():
			return x.ctx.Err()
		}
	}
	left, err := x.resultsOf(num)
	if err != nil {
		return err
	}
	if a.Record != "" {
		if end.Record, err = left.read(a.Record); err != nil {
			return err
		}
		record, _ := jobspec.ParseStepsRecord(end.Record)
		end.Troubled = record.Trouble != ""
	}
	list := a.Exports
	if end.State != fsm.TaskSucceeded.String() {
		list = left.those(list)
	}
	open := func(name string) (*os.Root, error) { return x.b.cfg.Roots.Writable(a.User, name) }
	end.Files, err = exports.Write(x.ctx, list, left, open, end.Files)
	return err
}

// resultsOf returns what a job has left, node.ErrNotFound if that is not here.
func (x *exporter) resultsOf(num uint64) (*jobResults, error) {
	id := command.JobID{Site: x.b.cfg.Site, Num: num}
	if x.b.owned == nil {
		return nil, node.ErrNoFiles
	}
	list, _, _ := x.b.owned.results.List(num, 0, 1)
	if len(list) == 0 {
		return nil, fmt.Errorf("the files of job %s: %w", id, node.ErrNotFound)
	}
	r := &jobResults{b: x.b, id: id}
	return r, r.load(list[0].Manifest.Hash)
}

// jobResults are what the only task of a job has left.
type jobResults struct {
	b    *Broker
	id   command.JobID
	list []files.Entry
}

var _ exports.Source = (*jobResults)(nil)

// load reads the manifest, to its end, where its hash is checked.
func (r *jobResults) load(manifest files.Hash) error {
	blob, err := r.b.OpenResult(r.id, manifest)
	if err != nil {
		return err
	}
	defer blob.Close()
	for e, err := range files.NewManifestReader(blob).All() {
		if err != nil {
			return fmt.Errorf("%w: read the manifest of job %s: %w", store.ErrDamaged, r.id, err)
		}
		r.list = append(r.list, e)
	}
	return nil
}

// Each implements exports.Source.
func (r *jobResults) Each(f func(e files.Entry) error) error {
	for i := range r.list {
		if err := f(r.list[i]); err != nil {
			return err
		}
	}
	return nil
}

// Open implements exports.Source.
func (r *jobResults) Open(e files.Entry) (io.ReadCloser, error) {
	if e.Inline != nil {
		return io.NopCloser(bytes.NewReader(e.Inline)), nil
	}
	return r.b.OpenResult(r.id, e.Hash)
}

// read returns one small file, nil if there is none or it is large.
func (r *jobResults) read(path string) ([]byte, error) {
	at := slices.IndexFunc(r.list, func(e files.Entry) bool { return e.Path == path })
	if at < 0 || r.list[at].Size > maxRecordBytes {
		return nil, nil
	}
	in, err := r.Open(r.list[at])
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// those returns the exports of which there are files.
func (r *jobResults) those(list []node.Export) []node.Export {
	return slices.DeleteFunc(slices.Clone(list), func(x node.Export) bool {
		return !slices.ContainsFunc(r.list, func(e files.Entry) bool {
			_, is := x.Takes(e.Path)
			return is
		})
	})
}

// Attached returns what is attached to a job of this site, without the document; node.ErrNotFound if nothing is.
func (b *Broker) Attached(_ context.Context, id command.JobID) (node.Attached, error) {
	a, known := b.exporter.book.Find(id.Num)
	if !known || id.Site != b.cfg.Site {
		return node.Attached{}, fmt.Errorf("job %s: nothing is kept beside its spec: %w", id, node.ErrNotFound)
	}
	return a, nil
}

// AttachedDocument is Attached with the document.
func (b *Broker) AttachedDocument(ctx context.Context, id command.JobID) (node.Attached, error) {
	if a, err := b.Attached(ctx, id); err != nil {
		return a, err
	}
	return b.exporter.book.Document(id.Num)
}

// AttachedJobs lists jobs of this site below a number, 0 = all, newest first: see exports.Book.List.
func (b *Broker) AttachedJobs(
	_ context.Context, below uint64, most int, f func(*node.Attached) bool,
) (list []node.AttachedJob, next uint64) {
	return b.exporter.book.List(below, most, f)
}
