package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// A hole is what a member needs of the tree and does not find there: an entry that somebody has deleted or
// overwritten, a snapshot that is not what an elector has signed. The member does not stop, and skips nothing. It says
// so to the others (SITE.stuck), and does not lead; whoever leads has the state, and writes a snapshot of now, from
// which the member goes on.

// hole is what this member does not find; the zero value is none.
type hole struct {
	why   atomic.Pointer[string] // nil: it finds all
	looks int                    // of the goroutine that reads the log; so are the next two
	entry uint64                 // at which this member could not open its term
	since time.Duration          // since when (sinceStart)

	mu   sync.Mutex
	said relay.Reminder
}

// open says that something is missing, and what.
func (h *hole) open(l *Log, err error) {
	why := err.Error()
	if h.why.Swap(&why) == nil {
		coord.Signal(l.kick)
	}
	h.tell(l, err)
}

// tell tells people, seldom, what is not as it was written.
func (h *hole) tell(l *Log, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said.Due("", time.Now()) {
		l.log.Warn().Err(err).Msg("somebody else writes or deletes in the tree: it is not believed, and what is missing is written again; " +
			"if that does not end, change the tree's password")
	}
}

// isOld reports whether this member could not open its term at an entry for so long.
func (h *hole) isOld(entry uint64, after time.Duration) bool {
	if h.entry != entry {
		h.entry, h.since = entry, sinceStart()
	}
	return sinceStart()-h.since >= after
}

// close says that this member goes on.
func (h *hole) close() { h.why.Store(nil) }

// reason returns what is missing, "" = nothing.
func (h *hole) reason() string {
	if why := h.why.Load(); why != nil {
		return *why
	}
	return ""
}

const stuckSuffix = ".stuck"

func stuckPath(site string) string { return tree.PresentPath + "/" + site + stuckSuffix }

// lookForHole finds an entry that is missing, or not what its leader has written, behind which the log goes on. It
// looks at the next one; where that is missing, too, at all now and then, or if told.
func (l *Log) lookForHole(ctx context.Context, n uint64, all bool) error {
	session := l.c.zk.SessionID()
	after, err := l.c.get(ctx, tree.EntryPath(n+1))
	if err != nil {
		return err
	}
	goesOn := after.found && l.isWritten(ctx, n+1, after.data)
	if l.hole.looks++; !goesOn && (all || l.hole.looks%looksAtAll == 0) {
		if goesOn, err = l.goesOnBehind(ctx, n+1); err != nil {
			return err
		}
	}
	if !goesOn {
		return nil
	}
	is, err := l.c.get(ctx, tree.EntryPath(n))
	if err != nil {
		return err
	}
	if is.found && l.isNext(ctx, n, is.data) {
		return nil // it has come meanwhile
	}
	if p, err := l.pointer(ctx); err != nil || p.Entry >= n || l.c.zk.SessionID() != session {
		return err
	}
	l.hole.open(l, l.missing(n, is.found))
	return nil
}

// looksAtAll is how many looks at the next entry go before one at all; mostJunk bounds how many znodes with greater
// numbers are read then: others can write some, too.
const (
	looksAtAll = 30
	mostJunk   = 64
)

// goesOnBehind reports whether the tree has an entry of a number above n that a member has written.
func (l *Log) goesOnBehind(ctx context.Context, n uint64) (bool, error) {
	logs, err := l.c.children(ctx, tree.LogPath)
	if err != nil {
		return false, err
	}
	names := slices.DeleteFunc(logs.children, func(name string) bool {
		at, err := tree.ParseNumber(name)
		return err != nil || at <= n
	})
	slices.Sort(names)
	for _, name := range names[:min(len(names), mostJunk)] {
		at, _ := tree.ParseNumber(name) // those that are none were deleted above
		is, err := l.c.get(ctx, tree.EntryPath(at))
		if err != nil || is.found && l.isWritten(ctx, at, is.data) {
			return err == nil, err
		}
	}
	return false, nil
}

// missing says which entry is.
func (l *Log) missing(n uint64, found bool) error {
	how := "it is missing"
	if found {
		how = "it is not as its leader has written it"
	}
	return fmt.Errorf("read %s%s: %w: %s, and the log goes on behind it", l.c.root, tree.EntryPath(n), tree.ErrDamaged, how)
}

// isWritten reports whether a znode of the log is an entry that a member has written under its number.
func (l *Log) isWritten(ctx context.Context, n uint64, data []byte) bool {
	e, err := l.c.readEntry(ctx, n, data)
	return err == nil && l.isBy(e.Site, func(k signature.Key) bool { return e.IsBy(l.line, n, k) })
}

// isNext reports whether a znode is the entry that comes next.
func (l *Log) isNext(ctx context.Context, n uint64, data []byte) bool {
	e, err := l.c.readEntry(ctx, n, data)
	if err == nil {
		err = l.machine.counts(n, &e)
	}
	return err == nil
}

// endsHere reports whether the log ends behind the last entry applied. While there is a hole it waits for the leader,
// or says so, if this is no member.
func (l *Log) endsHere(ctx context.Context) (ends bool, err error) {
	n := l.machine.position.Now() + 1
	if err = l.lookForHole(ctx, n, true); err != nil || l.hole.reason() == "" {
		return err == nil, err
	}
	if l.nonce == "" {
		return false, fmt.Errorf("%w: %s", tree.ErrDamaged, l.hole.reason())
	}
	return false, l.awaitMending(ctx)
}

// awaitMending says to the leader that this member is stuck, and waits as long as between two looks.
func (l *Log) awaitMending(ctx context.Context) error {
	l.mending.said.Store(true)
	if err := l.publishMark(ctx, stuckPath(l.cfg.Site), true, true); err != nil {
		return err
	}
	return l.rest(ctx)
}

// rest waits as long as between two looks.
func (l *Log) rest(ctx context.Context) error { return coord.Sleep(ctx, l.t.poll) }

// mending is how the leader helps members that are stuck.
type mending struct {
	due      atomic.Bool     // a snapshot of now
	said     atomic.Bool     // this member has said that it is stuck
	attempts facade.Attempts // owned by watchRoles
}

// mendLimits bound how often a snapshot is written for those who say that they are stuck: anybody can write that.
var mendLimits = facade.Limits{First: 2 * time.Second, Longest: time.Minute, Hourly: 60}

// mend has a snapshot of now written if this member leads and another one is stuck.
func (l *Log) mend(stuck []string) {
	r, now := l.leaderTerm.Load(), time.Now()
	if len(stuck) == 0 || r == nil || !r.isOpen() || !l.mending.attempts.Due(now) {
		return
	}
	l.mending.attempts.Note(now)
	l.log.Warn().Strs("sites", stuck).Msg("others do not find in the tree what they need: writing a snapshot of now")
	l.mending.due.Store(true)
	coord.Signal(l.grown)
}

// lookAtSnapshot counts this leader among those that are stuck if the newest snapshot is not one from which a new
// member could go on.
func (l *Log) lookAtSnapshot(ctx context.Context, w *watches, stuck *[]string) error {
	r := l.leaderTerm.Load()
	if r == nil || !r.isOpen() {
		return nil
	}
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()
	n, err := w.read(ctx, l.c, tree.SnapshotPath)
	var p tree.Pointer
	if err != nil || tree.Parse("", n.data, &p) == nil && l.isOwnSnapshot(p) && p.Entry+1 >= first {
		return err
	}
	*stuck = append(*stuck, l.cfg.Site)
	return nil
}

// errUnsigned reports a snapshot that is not what an elector has signed.
var errUnsigned = errors.New("no elector has signed it")

// pointer reads which snapshot is the newest. One that does not read, or is nobody's, is none: the leader writes the
// next one.
func (l *Log) pointer(ctx context.Context) (tree.Pointer, error) {
	p, _, err := l.c.pointer(ctx)
	if err == nil && !l.isOwnSnapshot(p) {
		err = fmt.Errorf("read %s%s: %w: %w", l.c.root, tree.SnapshotPath, tree.ErrDamaged, errUnsigned)
	}
	if errors.Is(err, tree.ErrDamaged) {
		l.hole.open(l, err)
		return tree.Pointer{}, nil
	}
	return p, err
}

// isOwnSnapshot reports whether a pointer is an elector's, or that of a tree that has no snapshot yet.
func (l *Log) isOwnSnapshot(p tree.Pointer) bool {
	return len(p.Sums) == 0 && p.Entry == 0 || l.isBy(p.By, func(k signature.Key) bool { return p.IsBy(l.line, k) })
}
