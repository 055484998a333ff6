package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/node/sim/swf"
)

// Job is a job of a workload that ran: whole seconds, whole processors.
type Job struct {
	Number int64
	Submit int64 // seconds since the first submission of its workload
	Run    int64 // seconds, rounded up; ≥ 1
	Width  int64 // processors; ≥ 1
	Asked  int64 // seconds that its user asked for, 0 = not known
	User   int64
}

// Workload is what one log asks for.
type Workload struct {
	Name string
	Jobs []Job // by (Submit, Number)
	// Lines are the log's jobs, Dropped those without a submission, a run time or
	// processors, Malformed the lines that could not be read as one.
	Lines, Dropped, Malformed int
	// Unsorted is how many jobs stand after one that was submitted later.
	Unsorted int
	// MaxProcs is the header's, 0 if there is none.
	MaxProcs string
	// SHA256 of the log, uncompressed, in hex.
	SHA256 string
	key    uint64

	firstDropped int // line
}

// ReadWorkload reads a log, plain or gzipped. report hears of each malformed
// line. Errors are those of package swf, ErrNoWork, and ErrBadCase for a log of
// more than six million jobs.
func ReadWorkload(src io.Reader, name string, report func(swf.Problem)) (*Workload, error) {
	return readWorkload(src, name, report, maxJobs)
}

// maxJobs bounds what reading a log takes in memory: so many take less than a
// gigabyte at most. A small compressed file may hold any number of jobs.
const maxJobs = 6_000_000

func readWorkload(src io.Reader, name string, report func(swf.Problem), most int) (*Workload, error) {
	sum := sha256.New()
	r := swf.NewReader(src, name, report)
	r.CopyTo(sum)
	w := &Workload{Name: name}
	latest := math.Inf(-1)
	for {
		j, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read workload: %w", err)
		}
		if j.Submit < latest {
			w.Unsorted++
		}
		latest = max(latest, j.Submit)
		if len(w.Jobs) == most {
			return nil, fmt.Errorf("read workload: %s:%d: %w: more than %d jobs; cut the log", name, r.Line(), ErrBadCase, most)
		}
		if !w.add(&j) && w.Dropped == 1 {
			w.firstDropped = r.Line()
		}
	}
	w.Lines, w.Malformed = r.Jobs(), r.Problems()
	w.MaxProcs, _ = r.Field("MaxProcs")
	digest := sum.Sum(nil)
	w.SHA256 = hex.EncodeToString(digest)
	for _, b := range digest[:8] {
		w.key = w.key<<8 | uint64(b)
	}
	return w, w.sortJobs()
}

// OpenWorkload reads a log's file and names the workload after it. It ends with
// ctx, also when the file is a pipe in which nothing comes.
func OpenWorkload(ctx context.Context, path string, report func(swf.Problem)) (*Workload, error) {
	f, err := openLog(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })() // a read that waits ends
	w, err := ReadWorkload(f, path, report)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read log %s: %w", path, context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	w.Name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".swf")
	return w, nil
}

// openLog opens a file that is no folder. A pipe opens once somebody writes to it,
// which may be never.
func openLog(ctx context.Context, path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: %w", path, errFolder)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", path, context.Cause(ctx))
	}
}

// add takes a job that ran, and says whether it did. A log's times are whole seconds almost always: a
// fraction of a submission is cut off, one of a run counts as a second.
func (w *Workload) add(j *swf.Job) bool {
	if j.Run <= 0 || j.Width() <= 0 || j.Submit < 0 {
		w.Dropped++
		return false
	}
	w.Jobs = append(w.Jobs, Job{
		Number: j.Number, Submit: int64(math.Floor(j.Submit)), Run: int64(math.Ceil(j.Run)), Width: j.Width(),
		User: j.User, Asked: asked(j),
	})
	return true
}

// asked returns the time a job's user asked for.
func asked(j *swf.Job) int64 {
	if !(j.ReqTime > 0 && j.ReqTime <= maxSecond) {
		return 0
	}
	return int64(math.Ceil(j.ReqTime))
}

// sortJobs sorts the jobs and lets time begin with the first.
func (w *Workload) sortJobs() error {
	if len(w.Jobs) == 0 {
		return fmt.Errorf("read %s: %w (fields 2, 4, and 5 or 8): all %d jobs were left out, the first in line %d", w.Name, ErrNoWork, w.Dropped, w.firstDropped)
	}
	slices.SortStableFunc(w.Jobs, compareJobs)
	first := w.Jobs[0].Submit
	for i := range w.Jobs {
		w.Jobs[i].Submit -= first
	}
	return nil
}

// Span returns the seconds from the first submission to the last.
func (w *Workload) Span() int64 { return w.Jobs[len(w.Jobs)-1].Submit }

// Between returns the jobs submitted in [from, to), counted from the first.
func (w *Workload) Between(from, to int64) []Job {
	at := func(t int64) int {
		i, _ := slices.BinarySearchFunc(w.Jobs, t, func(j Job, t int64) int { return cmp.Compare(j.Submit, t) })
		return i
	}
	return w.Jobs[at(from):at(to)]
}

// Merge plays several logs as one: their first submissions coincide, and equal
// users of different logs are different people. REQUIRES: at least one.
func Merge(logs ...*Workload) *Workload {
	if len(logs) == 1 {
		return logs[0]
	}
	all := &Workload{}
	for i, w := range logs {
		all.Name = strings.TrimPrefix(all.Name+"+"+w.Name, "+")
		all.Lines, all.Dropped, all.Malformed, all.Unsorted = all.Lines+w.Lines, all.Dropped+w.Dropped,
			all.Malformed+w.Malformed, all.Unsorted+w.Unsorted
		all.key = NewKeyedRand(all.key, w.key).key
		for _, j := range w.Jobs {
			j.User = j.User*int64(len(logs)) + int64(i)
			j.Number = j.Number*int64(len(logs)) + int64(i)
			all.Jobs = append(all.Jobs, j)
		}
	}
	slices.SortStableFunc(all.Jobs, compareJobs)
	return all
}

// compareJobs returns the order of a workload.
func compareJobs(a, b Job) int {
	return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.Number, b.Number))
}

// UnitTasks returns how many tasks of one core and that many seconds the log's jobs make.
func (w *Workload) UnitTasks(unit int64) (n int64) {
	for i := range w.Jobs {
		n += w.Jobs[i].Width * ((w.Jobs[i].Run + unit - 1) / unit)
	}
	return n
}
