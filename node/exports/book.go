package exports

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/internal/tally"
	"github.com/cloudshare/cloudshare/node/record"
)

// Journal is where the book stands.
type Journal interface {
	record.Reader
	Commit(writes []record.Write) error
}

// Book has what is attached to this site's jobs. Documents stay in the journal. It is safe for concurrent use.
type Book struct {
	journal Journal

	mu   sync.Mutex
	jobs map[uint64]*job
	nums []uint64 // of jobs, ascending
	// open counts the jobs without an end.
	open tally.ByUser[int]
	// done are the bytes of the documents of jobs that have ended, held the others'.
	done int64
	held tally.ByUser[int64]
}

// job is one with something attached, without the document.
type job struct {
	node.Attached
	bytes int64 // of the document
}

// Open reads the book from the journal.
func Open(j Journal) (*Book, error) {
	b := &Book{journal: j, jobs: map[uint64]*job{}}
	err := j.Each(record.BucketAttached, func(k, v []byte) error {
		a := &node.Attached{}
		if err := json.Unmarshal(v, a); err != nil || len(k) != 8 {
			return fmt.Errorf("a record of what is attached to a job is damaged: %x: %w", k, err)
		}
		b.add(record.DecodeNumber(k), a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, j.Each(record.BucketAttachedEnds, func(k, v []byte) error {
		end := &node.AttachedEnd{}
		if err := json.Unmarshal(v, end); err != nil || len(k) != 8 {
			return fmt.Errorf("a record of how a job ended is damaged: %x: %w", k, err)
		}
		if a := b.jobs[record.DecodeNumber(k)]; a != nil {
			b.end(a, end)
		}
		return nil
	})
}

// end notes a job's end. REQUIRES: b.mu held, or b not shared yet; it had none.
func (b *Book) end(j *job, end *node.AttachedEnd) {
	j.End = end
	b.open.Add(j.User, -1)
	b.held.Add(j.User, -j.bytes)
	b.done += j.bytes
}

// add takes a record. REQUIRES: b.mu held, or b not shared yet.
func (b *Book) add(num uint64, a *node.Attached) {
	j := &job{*a, int64(len(a.Document))}
	j.Document = nil
	b.jobs[num] = j
	b.open.Add(a.User, 1)
	b.held.Add(a.User, j.bytes)
	at, _ := slices.BinarySearch(b.nums, num)
	b.nums = slices.Insert(b.nums, at, num)
}

// Admit returns why no more jobs are taken that have something attached, or nil.
func (b *Book) Admit(a *node.Attached) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(a.Document) > MaxDocument:
		return fmt.Errorf("%w: it has %d bytes, at most %d", ErrRefused, len(a.Document), MaxDocument)
	case b.open.Sum() >= MaxOpen:
		return fmt.Errorf("%w: %d have not ended (at most %d): send it again when some have", node.ErrAttachedFull,
			b.open.Sum(), MaxOpen)
	case a.User != "" && b.open.Of(a.User) >= MaxOpen/partsOpen:
		return fmt.Errorf("%w: %d of user %s have not ended (at most %d): send it again when some have",
			node.ErrAttachedFull, b.open.Of(a.User), a.User, MaxOpen/partsOpen)
	case a.User != "" && b.held.Of(a.User) > MaxBytes/2/partsOpen:
		return fmt.Errorf("%w: the documents of those of user %s that have not ended have %d bytes (at most %d): send it "+
			"again when some have", node.ErrAttachedFull, a.User, b.held.Of(a.User), int64(MaxBytes/2/partsOpen))
	case b.bytes() > MaxBytes:
		return fmt.Errorf("%w: their documents have %d bytes (at most %d): send it again when some have ended",
			node.ErrAttachedFull, b.bytes(), int64(MaxBytes))
	}
	return nil
}

// bytes returns those of all documents. REQUIRES: b.mu held.
func (b *Book) bytes() int64 { return b.held.Sum() + b.done }

// Keep takes what the core has recorded of a job that was accepted.
func (b *Book) Keep(num uint64, a node.Attached) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[num] == nil {
		b.add(num, &a)
	}
}

// Find returns what is attached to a job, without the document.
func (b *Book) Find(num uint64) (node.Attached, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[num]; j != nil {
		return j.Attached, true
	}
	return node.Attached{}, false
}

// Document returns what is attached to a job, with the document.
func (b *Book) Document(num uint64) (node.Attached, error) {
	a, known := b.Find(num)
	if !known {
		return a, node.ErrNotFound
	}
	text, err := b.journal.Get(record.BucketAttached, record.Number(num))
	if err == nil && text == nil {
		err = node.ErrNotFound // forgotten meanwhile
	}
	whole := node.Attached{}
	if err == nil {
		err = json.Unmarshal(text, &whole)
	}
	if err != nil {
		return a, fmt.Errorf("read what is attached to job %d: %w", num, err)
	}
	a.Document = whole.Document
	return a, nil
}

// List returns the jobs below a number, 0 = all, newest first, that f takes, so many at most, and the number to go on
// below, 0 = there are no more. It looks at a bounded number of jobs.
func (b *Book) List(below uint64, most int, f func(*node.Attached) bool) (list []node.AttachedJob, next uint64) {
	const looks = 10_000
	b.mu.Lock()
	defer b.mu.Unlock()
	at := len(b.nums)
	if below != 0 {
		at, _ = slices.BinarySearch(b.nums, below)
	}
	for looked := 0; at > 0; looked++ {
		if looked == looks || len(list) == most {
			return list, b.nums[at]
		}
		at--
		if j := b.jobs[b.nums[at]]; f(&j.Attached) {
			list = append(list, node.AttachedJob{Num: b.nums[at], Attached: j.Attached, Bytes: j.bytes})
		}
	}
	return list, 0
}

// Unended returns the jobs of which it is not known that they have ended.
func (b *Book) Unended() (nums []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open.Sum() == 0 {
		return nil
	}
	for _, num := range b.nums {
		if b.jobs[num].End == nil {
			nums = append(nums, num)
		}
	}
	return nums
}

// Has reports whether a job's end is to be noted.
func (b *Book) Has(num uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.jobs[num]
	return a != nil && a.End == nil
}

// End notes how a job has ended, durably. The oldest that have ended go if there are too many.
func (b *Book) End(num uint64, end *node.AttachedEnd) error {
	err := b.journal.Commit([]record.Write{record.PutRecord(record.BucketAttachedEnds, record.Number(num), end)})
	if err != nil {
		return fmt.Errorf("record how job %d ended: %w", num, err)
	}
	b.mu.Lock()
	if a := b.jobs[num]; a != nil && a.End == nil {
		b.end(a, end)
	}
	gone := b.forget()
	b.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	return b.remove(gone)
}

// forget drops the oldest of what has ended, if there is too much. REQUIRES: b.mu held.
func (b *Book) forget() (gone []uint64) {
	many := len(b.nums) - b.open.Sum() - maxDone
	if many <= 0 && b.done <= MaxBytes/2 {
		return nil
	}
	b.nums = slices.DeleteFunc(b.nums, func(num uint64) bool {
		j := b.jobs[num]
		if j.End == nil || many <= 0 && b.done <= MaxBytes/2 {
			return false
		}
		many--
		b.done -= j.bytes
		gone = append(gone, num)
		delete(b.jobs, num)
		return true
	})
	return gone
}

func (b *Book) remove(nums []uint64) error {
	var writes []record.Write
	for _, num := range nums {
		writes = append(writes, record.Tidy(record.BucketAttached, record.Number(num)),
			record.Tidy(record.BucketAttachedEnds, record.Number(num)))
	}
	if err := b.journal.Commit(writes); err != nil {
		return fmt.Errorf("forget what is attached to jobs: %w", err)
	}
	return nil
}
