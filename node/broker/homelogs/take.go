package homelogs

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
)

const (
	// maxText bounds the text that is in memory, for each site, before it goes to the store.
	maxText = 1 << 20
	// partExt is how the names of large streams end that have not gone to the store yet.
	partExt = ".part"
)

var (
	errOther = errors.New("its broker gives another attempt than was asked for")
	errStore = errors.New("what came cannot be kept here")
)

// taking is one answer as it comes.
type taking struct {
	*worker
	batch []want
	parts [2]partial // of the attempt that comes now
	items []Output   // whole, not in the store yet
	text  int        // their bytes in memory
	kept  int        // of the batch: settled, if it is an output in the store
	done  int        // of the batch: answered
	later []want     // not to be had now
}

// partial is a stream that has not come whole.
type partial struct {
	text []byte
	file *os.File
	size int64
}

var _ asklogs.Taker = (*taking)(nil)

// Piece implements asklogs.Taker.
func (t *taking) Piece(_, stream int, b []byte) error {
	p := &t.parts[stream]
	p.size += int64(len(b))
	if p.file == nil && len(p.text)+len(b) <= t.cfg.Inline {
		p.text = append(p.text, b...)
		return nil
	}
	var err error
	if p.file == nil {
		if p.file, err = os.CreateTemp(t.cfg.Dir, "*"+partExt); err == nil {
			_, err = p.file.Write(p.text)
			p.text = nil
		}
	}
	if err == nil {
		_, err = p.file.Write(b)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// Done implements asklogs.Taker.
func (t *taking) Done(i int, d asklogs.Done) error {
	one := t.batch[i]
	if d.Refusal != asklogs.Granted {
		t.drop()
		if t.done++; d.Refusal.Temporary() {
			t.later = append(t.later, one)
		} else if one.Attempt > 0 { // else any site may have it
			t.missing.Add(1)
		}
		return nil
	}
	if one.Attempt > 0 && d.Attempt != one.Attempt || one.token > 0 && d.Token != one.token {
		return fmt.Errorf("task %s/%d: %w", t.job(one), one.Task, errOther)
	}
	it := Output{
		ID: executor.ID{Job: t.job(one), Task: one.Task, Attempt: d.Attempt, Token: d.Token}, At: time.Now(),
	}
	for n := range t.parts {
		p := &t.parts[n]
		if it.Streams[n].Text = p.text; p.file != nil {
			it.Streams[n] = Stream{Path: p.file.Name(), Size: p.size}
			if err := p.file.Close(); err != nil {
				return fmt.Errorf("%w: %w", errStore, err)
			}
		}
		t.text += len(p.text)
		t.bytes.Add(uint64(p.size))
	}
	t.parts = [2]partial{}
	t.items = append(t.items, it)
	if t.done++; t.text < maxText {
		return nil
	}
	return t.put()
}

// put has the store keep what is whole.
func (t *taking) put() error {
	if len(t.items) > 0 {
		if err := t.cfg.Store.Put(t.items); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		t.brought.Add(uint64(len(t.items)))
	}
	t.items, t.text, t.kept = nil, 0, t.done
	return nil
}

// finish puts what is whole into the store, and drops what is not.
func (t *taking) finish() error {
	t.drop()
	err := t.put()
	for _, it := range t.items { // the store has not taken them
		for _, s := range it.Streams {
			if s.Path != "" {
				_ = os.Remove(s.Path)
			}
		}
	}
	return err
}

// drop forgets what came of the attempt of now.
func (t *taking) drop() {
	for _, p := range t.parts {
		if p.file != nil {
			_ = p.file.Close()
			_ = os.Remove(p.file.Name())
		}
	}
	t.parts = [2]partial{}
}
