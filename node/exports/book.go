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

// Book has what is attached to this site's jobs. Documents, and of ends the files and what is kept with them, stay in
// the journal. It is safe for concurrent use.
type Book struct {
	journal Journal

	mu   sync.Mutex
	jobs map[uint64]*job
	nums []uint64 // of jobs, ascending
	// open is how much is kept of jobs without an end, done of those with one; by user and of all.
	open, done tally.ByUser[amount]
}

// job is one with something attached. Its end, if it has one, is without files and what is kept with it.
type job struct {
	node.Attached
	amount
	ending bool          // its end is being recorded
	ended  chan struct{} // closed with the end; nil: nobody has asked
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
			b.end(a, end, len(v))
		}
		return nil
	})
}

// end notes a job's end, which has so many bytes in the journal. REQUIRES: b.mu held, or b not shared yet; it had none.
func (b *Book) end(j *job, end *node.AttachedEnd, text int) {
	short := *end
	short.Files, short.Record = nil, nil
	j.End = &short
	b.open.Add(j.User, j.amount, -1)
	j.amount = j.amount.Plus(amountOfEnd(end, text), 1)
	b.done.Add(j.User, j.amount, 1)
	if j.ended != nil {
		close(j.ended)
	}
}

// add takes a record. REQUIRES: b.mu held, or b not shared yet.
func (b *Book) add(num uint64, a *node.Attached) {
	j := &job{Attached: *a, amount: amountOf(a, len(a.Document))}
	j.Document = nil
	b.jobs[num] = j
	b.open.Add(a.User, j.amount, 1)
	at, _ := slices.BinarySearch(b.nums, num)
	b.nums = slices.Insert(b.nums, at, num)
}

// Admit returns why no more jobs are taken that have something attached, or nil.
func (b *Book) Admit(a *node.Attached) error {
	if len(a.Document) > MaxDocument {
		return fmt.Errorf("%w: it has %d bytes, at most %d", ErrRefused, len(a.Document), MaxDocument)
	}
	more := amountOf(a, len(a.Document))
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := mostOpen.part(partsOfUser); a.User != "" && !b.open.Of(a.User).Plus(more, 1).within(most) {
		return fmt.Errorf("%w: of user %s %s have not ended (at most %s): send it again when some have",
			node.ErrAttachedFull, a.User, b.open.Of(a.User), most)
	}
	if !b.open.Sum().Plus(more, 1).within(mostOpen) {
		return fmt.Errorf("%w: %s have not ended (at most %s): send it again when some have", node.ErrAttachedFull,
			b.open.Sum(), mostOpen)
	}
	return nil
}

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

// Document returns what is attached to a job, with the document, and with all of its end.
func (b *Book) Document(num uint64) (node.Attached, error) {
	a, known := b.Find(num)
	if !known {
		return a, node.ErrNotFound
	}
	whole := node.Attached{}
	err := b.read(record.BucketAttached, num, &whole)
	if err == nil && a.End != nil {
		a.End = &node.AttachedEnd{}
		err = b.read(record.BucketAttachedEnds, num, a.End)
	}
	if err != nil {
		return a, fmt.Errorf("read what is attached to job %d: %w", num, err)
	}
	a.Document = whole.Document
	return a, nil
}

// read reads a record; node.ErrNotFound: it was forgotten meanwhile.
func (b *Book) read(from record.Bucket, num uint64, to any) error {
	text, err := b.journal.Get(from, record.Number(num))
	if err == nil && text == nil {
		err = node.ErrNotFound
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
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
	if b.open.Sum().jobs == 0 {
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

// Ended returns what is closed once a job has an end, or if nothing is attached to it.
func (b *Book) Ended(num uint64) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[num]
	if j == nil || j.End != nil {
		over := make(chan struct{})
		close(over)
		return over
	}
	if j.ended == nil {
		j.ended = make(chan struct{})
	}
	return j.ended
}

// End notes how a job has ended, durably, unless it has an end or is getting one. The oldest that have ended go if
// there are too many. Of a great many files not all are kept: end says of how many that is so.
func (b *Book) End(num uint64, end *node.AttachedEnd) error {
	if !b.beginEnd(num) {
		return nil
	}
	shorten(end)
	text, err := json.Marshal(end)
	if err == nil {
		err = b.journal.Commit([]record.Write{record.Put(record.BucketAttachedEnds, record.Number(num), text)})
	}
	b.mu.Lock()
	j := b.jobs[num]
	j.ending = false
	if err != nil {
		b.mu.Unlock()
		return fmt.Errorf("record how job %d ended: %w", num, err)
	}
	b.end(j, end, len(text))
	gone := b.forget(j.User)
	b.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	return b.remove(gone)
}

// beginEnd reports whether a job is to be given its end, by the caller alone.
func (b *Book) beginEnd(num uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[num]
	if j == nil || j.End != nil || j.ending {
		return false
	}
	j.ending = true
	return true
}

// shorten leaves out the last files of an end that would have more than maxEnd bytes.
func shorten(end *node.AttachedEnd) {
	const each = 64 // of a file besides its path, as JSON; a path may have six bytes for one
	left := maxEnd - len(end.Record)
	for i := range end.Files {
		if left -= each + 6*len(end.Files[i].Path); left < 0 {
			end.Untold += len(end.Files) - i
			end.Files = end.Files[:i:i]
			return
		}
	}
}

// partsForgotten is of which parts of a bound one more is forgotten when it is passed, so that not each end looks at
// all jobs.
const partsForgotten = 32

// forget drops the oldest of what has ended, if there is too much of a user's or of all. REQUIRES: b.mu held.
func (b *Book) forget(user string) (gone []uint64) {
	mostOfUser := mostDone.part(partsOfUser)
	ofUser := user != "" && !b.done.Of(user).within(mostOfUser)
	ofAll := !b.done.Sum().within(mostDone)
	if !ofUser && !ofAll {
		return nil
	}
	mostOfUser, most := mostOfUser.lessOne(partsForgotten), mostDone.lessOne(partsForgotten)
	b.nums = slices.DeleteFunc(b.nums, func(num uint64) bool {
		j := b.jobs[num]
		tooMany := ofUser && j.User == user && !b.done.Of(user).within(mostOfUser) ||
			ofAll && !b.done.Sum().within(most)
		if j.End == nil || !tooMany {
			return false
		}
		b.done.Add(j.User, j.amount, -1)
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
