package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/broker/results"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an owner's broker around a loop: a real store and book, a state and other sites that a test plays.
type rig struct {
	t       *testing.T
	files   *store.Store
	journal *record.Journal
	book    *results.Book
	state   *state
	peers   map[string]*peer
	wanted  map[uint64]Wanted
	via     transfer.Puller // nil: the peers without a network
	told    chan command.Delivered
	deaf    command.Code // what the federation answers
	dirs    [2]string
	quota   int64
	full    fullDisk
	loop    *Loop
	stop    func()
}

const waitFor = time.Hour

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, state: newState(), peers: map[string]*peer{}, wanted: map[uint64]Wanted{},
		told: make(chan command.Delivered, 10_000), dirs: [2]string{t.TempDir(), t.TempDir()}, quota: 1 << 30,
	}
	r.open()
	return r
}

// open begins a life of the broker, up to its loop.
func (r *rig) open() {
	r.t.Helper()
	var err error
	limit := store.Limit{Max: r.quota, Keep: 24 * time.Hour}
	r.files, err = store.Open(store.Options{
		Dir: r.dirs[0], Now: time.Now, Limits: store.Limits{Own: limit, Cache: limit, Outgoing: limit},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.journal, err = record.OpenJournal(r.dirs[1]); err != nil {
		r.t.Fatal(err)
	}
	r.book, err = results.Open(results.Options{
		Journal: r.journal, Store: r.files, Now: time.Now, UserOf: func(uint64) string { return "ann" },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err = r.book.Load(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// start runs the loop.
func (r *rig) start() {
	r.loop = New(Config{
		Store: r.files, Results: r.book, State: r.state, Transfers: r.transfers(), WantedOf: r.wantedOf, Say: r.say,
		Full: func(int64) error { return r.full.get() }, Wait: waitFor, Pins: "deliver", Pace: Prompt, Logger: zerolog.Nop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.loop.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
}

// close ends the broker.
func (r *rig) close() {
	r.t.Helper()
	if r.stop != nil {
		r.stop()
	}
	if err := errors.Join(r.files.Close(), r.journal.Close()); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) transfers() transfer.Puller {
	if r.via != nil {
		return r.via
	}
	return direct{r.peers}
}

func (r *rig) wantedOf(ref command.AttemptRef) (Wanted, error) {
	w, ok := r.wanted[ref.Job.Num]
	if !ok {
		w = Wanted{User: "ann", Outputs: jobspec.Outputs{Paths: []string{"out/*"}, MaxBytes: 1 << 30}}
	}
	return w, nil
}

func (r *rig) say(list []command.Delivered, done func(command.Code)) {
	for _, d := range list {
		r.told <- d
		if r.deaf == command.OK {
			r.state.heard(d.AttemptRef)
		}
	}
	go done(r.deaf)
}

// peer returns a site that ran something.
func (r *rig) peer(name string) *peer {
	p := r.peers[name]
	if p == nil {
		p = &peer{
			blobs: map[files.Hash][]byte{}, refuse: map[files.Hash]transfer.Refusal{}, asked: map[files.Hash]int{},
		}
		r.peers[name] = p
	}
	return p
}

// left has a task have left files with these contents at a site, and be delivering.
func (r *rig) left(site string, num uint64, task uint32, contents ...string) fsm.Delivery {
	r.t.Helper()
	var entries []files.Entry
	sum := int64(0)
	for i, c := range contents {
		e := files.Entry{Path: fmt.Sprintf("out/%03d", i), Size: int64(len(c)), Hash: files.HashOf([]byte(c))}
		if len(c) <= files.MaxInline {
			e.Inline = []byte(c)
		} else {
			r.peer(site).hold([]byte(c))
		}
		entries, sum = append(entries, e), sum+e.Size
	}
	text, err := files.EncodeManifest(entries)
	if err != nil {
		r.t.Fatal(err)
	}
	r.peer(site).hold(text)
	return r.delivers(site, num, task, command.Output{Manifest: files.HashOf(text), Size: int64(len(text)), Bytes: sum})
}

// delivers has a task be delivering.
func (r *rig) delivers(site string, num uint64, task uint32, o command.Output) fsm.Delivery {
	d := fsm.Delivery{
		AttemptRef: command.AttemptRef{Job: command.JobID{Site: "home", Num: num}, Task: task, Attempt: 1, Token: 9},
		Site:       site, Output: o,
	}
	r.state.add(&d)
	return d
}

// next returns what the federation is told next.
func (r *rig) next() command.Delivered { return <-r.told }

// content returns what is kept of a task's files, by path.
func (r *rig) content(num uint64, task uint32) map[string]string {
	r.t.Helper()
	list, _, _ := r.book.List(num, task, 1)
	if len(list) == 0 || list[0].Task != task {
		return nil
	}
	got := map[string]string{}
	m := files.NewManifestReader(bytes.NewReader(r.read(list[0].Manifest.Hash)))
	for {
		e, err := m.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if got[e.Path] = string(e.Inline); e.Inline == nil {
			got[e.Path] = string(r.read(e.Hash))
		}
	}
}

func (r *rig) read(h files.Hash) []byte {
	r.t.Helper()
	rd, err := r.files.Open(store.OwnOf("ann"), h)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	b, err := io.ReadAll(rd)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// big is content that stands in no manifest.
func big(name string) string { return name + strings.Repeat(".", files.MaxInline) }

// huge is content of several pieces.
func huge(name string) string { return strings.Repeat(name, (2*files.PieceBytes+1)/len(name)+1) }

// state is the federation's, as far as the loop sees it.
type state struct {
	mu      sync.Mutex
	entry   uint64
	settled uint64 // entry with which something left that its owner did not say
	list    []fsm.Delivery
	changed chan struct{}
}

func newState() *state { return &state{entry: 1, changed: make(chan struct{})} }

func (s *state) move(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry++
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *state) add(d *fsm.Delivery) {
	s.move(func() {
		d.Since, d.SinceMs = s.entry, s.Now()
		s.list = append(s.list, *d)
	})
}

func (s *state) without(ref command.AttemptRef) []fsm.Delivery {
	return slices.DeleteFunc(s.list, func(d fsm.Delivery) bool { return d.AttemptRef == ref })
}

func (s *state) heard(ref command.AttemptRef) { s.move(func() { s.list = s.without(ref) }) }

func (s *state) cancel(ref command.AttemptRef) {
	s.move(func() { s.list, s.settled = s.without(ref), s.entry })
}

func (s *state) Since(entry uint64) (changed []fsm.Delivery, whole bool, now uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole = entry < s.settled || entry == 0
	for _, d := range s.list {
		if whole || d.Since > entry {
			changed = append(changed, d)
		}
	}
	return changed, whole, s.entry
}

func (s *state) Await(ctx context.Context, entry uint64) error {
	for {
		s.mu.Lock()
		now, changed := s.entry, s.changed
		s.mu.Unlock()
		if now > entry {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *state) Now() int64 { return time.Now().UnixMilli() }

func (s *state) Where(site string) (addr string, entry uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return site + ":1", s.entry
}

// peer is the broker of a site that ran tasks.
type peer struct {
	mu     sync.Mutex
	away   bool
	hangs  bool // it sends nothing, as long as anybody waits
	blobs  map[files.Hash][]byte
	refuse map[files.Hash]transfer.Refusal
	asked  map[files.Hash]int // by pieces
	breaks int                // behind so many pieces it cannot be reached, 0 = never
	stops  int                // behind so many pieces it hangs, 0 = never
}

func (p *peer) hold(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blobs[files.HashOf(b)] = b
}

func (p *peer) set(f func(*peer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func (p *peer) give(ctx context.Context, b transfer.Blob, off, n int64) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hangs {
		p.mu.Unlock()
		<-ctx.Done()
		p.mu.Lock()
		return nil, ctx.Err()
	}
	if p.away {
		return nil, transfer.ErrUnreachable
	}
	if p.breaks > 0 {
		if p.breaks--; p.breaks == 0 {
			p.away = true
		}
	}
	if p.stops > 0 {
		p.stops--
		p.hangs = p.stops == 0
	}
	p.asked[b.Hash]++
	if why := p.refuse[b.Hash]; why != transfer.Granted {
		return nil, &transfer.RefusedError{Refusal: why, Hash: b.Hash}
	}
	content, ok := p.blobs[b.Hash]
	if !ok || int64(len(content)) != b.Size {
		return nil, &transfer.RefusedError{Refusal: transfer.NotHere, Hash: b.Hash}
	}
	return content[off : off+n], nil
}

// direct asks peers without a network.
type direct struct{ peers map[string]*peer }

func (t direct) Pull(ctx context.Context, site, _ string, _ uint64, b transfer.Blob, to transfer.Sink) error {
	for _, i := range to.Missing() {
		at := int64(i) * files.PieceBytes
		piece, err := t.peers[site].give(ctx, b, at, min(files.PieceBytes, b.Size-at))
		if err != nil {
			return fmt.Errorf("pull: %w", err)
		}
		if err := to.WritePiece(i, piece); err != nil {
			return fmt.Errorf("%w: %w", transfer.ErrSink, err)
		}
	}
	return nil
}

func (t direct) PullBatch(ctx context.Context, site, _ string, _ uint64, blobs []transfer.Blob,
	take func(i int, content []byte, refused error) error,
) error {
	for i, b := range blobs {
		content, err := t.peers[site].give(ctx, b, 0, b.Size)
		var refused *transfer.RefusedError
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("pull: %w", err)
		}
		if err = take(i, content, err); err != nil {
			return fmt.Errorf("pull: %w", err)
		}
	}
	return nil
}

func outcome(t *testing.T, got command.Delivered, d fsm.Delivery, want command.Delivery, words string) {
	t.Helper()
	if got.AttemptRef != d.AttemptRef || got.Outcome != want || !strings.Contains(got.Detail, words) {
		t.Errorf("told %+v, want outcome %d of %v: %s", got, want, d.AttemptRef, words)
	}
}

// delivering is the delivery that the federation was told of.
func (r *rig) delivering(of command.Delivered) fsm.Delivery {
	return fsm.Delivery{AttemptRef: of.AttemptRef}
}

// fullDisk is why the disk takes nothing.
type fullDisk struct {
	mu  sync.Mutex
	why error
}

func (f *fullDisk) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

func (f *fullDisk) set(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
}
