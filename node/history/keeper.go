package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/replica"
)

const (
	// maxQueued bytes wait for the disk. Who cannot write that fast has a gap.
	maxQueued = 16 << 20
	// keptLevel is of the checkpoints at which a segment may begin, and of which statements are kept: 40 s of log time
	// lie between two.
	keptLevel = 3
	// maxWanted is of how many such checkpoints statements are still taken: members ask each other within a minute.
	maxWanted = 16
	// A segment of the bound's 1/rollPart is followed by another one; a state takes the bound's 1/statePart at most, so
	// that most of what is kept is entries.
	rollPart  = 4
	statePart = 8
	// gather is how long the writer lets entries come: each would else be a write of its own.
	gather = 50 * time.Millisecond
	// restAfter is how long nothing is tried after a segment that could not be written: its state may be large.
	restAfter = 10 * time.Minute
)

// Config of a Keeper.
type Config struct {
	Dir      string // made if it is not there
	MaxBytes int64  // of all segments together; the oldest goes first
	MinFree  int64  // bytes of the file system that are left to the broker; 0 = none
	Site     string
	Version  string // of the program
	Logger   zerolog.Logger
}

// Keeper keeps the history of a broker. Its methods may be called from any goroutine, and those of replica.History
// never wait for the disk.
type Keeper struct {
	cfg  Config
	wake chan struct{} // has one if something is queued
	quit chan struct{}
	done chan struct{} // closed once the writer has ended
	end  sync.Once

	out   output        // the writer's
	gaps  atomic.Uint64 // since Open
	bytes atomic.Int64  // of all segments
	state atomic.Int64  // of the state with which the segment begins

	mu     sync.Mutex
	queue  []job
	queued int                        // bytes of queue
	on     bool                       // entries are taken: those behind at
	at     place                      // of the last one taken, or of the state
	grown  int64                      // bytes of the segment's records behind the state, queued ones included
	wanted map[uint64]map[string]bool // by checkpoint: whose statements were kept
	order  []uint64                   // those of wanted, oldest first
	rest   time.Time                  // no segment is begun before, after one that could not be written
}

// place is where in a history something stands.
type place struct {
	entry uint64
	chain replica.Chain
}

// job is what the writer does next: a state begins a segment, if there is one, and then records follow.
type job struct {
	state   coord.Snapshot // nil: in the segment of now
	begins  place          // of state
	records []byte
	at      place // behind the records
	broken  bool  // what follows is not kept: the segment ends here
}

var _ replica.History = (*Keeper)(nil)

// Gaps returns how often entries could not be kept since Open.
func (k *Keeper) Gaps() uint64 { return k.gaps.Load() }

// Bytes returns the size of what is kept.
func (k *Keeper) Bytes() int64 { return k.bytes.Load() }

// Append implements replica.History.
func (k *Keeper) Append(number uint64, before, behind replica.Chain, entry []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.on:
	case number < k.at.entry: // again, after a restart
	case number == k.at.entry && behind == k.at.chain:
	case number != k.at.entry+1 || before != k.at.chain:
		k.lose(fmt.Errorf("what is kept ends with entry %d, and what came now is entry %d of another history, or of later on",
			k.at.entry, number))
	case len(entry) > command.MaxBatch:
		k.lose(fmt.Errorf("entry %d has %d bytes, at most %d are kept", number, len(entry), command.MaxBatch))
	case k.queued+len(entry) > maxQueued:
		k.lose(fmt.Errorf("the disk takes less than is ordered: %d MiB wait for it", k.queued>>20))
	case k.grown+int64(len(entry)) > k.cfg.MaxBytes/4*3:
		k.lose(errEndless)
	default:
		k.at = place{number, behind}
		var n [binary.MaxVarintLen64]byte
		k.add(KindEntry, n[:binary.PutUvarint(n[:], number)], entry)
	}
}

// add queues a record. REQUIRES: k.mu held, and k.on.
func (k *Keeper) add(kind Kind, parts ...[]byte) {
	if len(k.queue) == 0 {
		k.queue = append(k.queue, job{})
	}
	last := &k.queue[len(k.queue)-1]
	before := len(last.records)
	last.records, last.at = appendRecord(last.records, kind, parts...), k.at
	k.queued += len(last.records) - before
	k.grown += int64(len(last.records) - before)
	coord.Signal(k.wake)
}

// errEndless reports a segment behind which none begins: checkpoints lie where log time moves, which is a leader's
// word.
var errEndless = errors.New("no checkpoint came for three quarters of history.max_bytes: see to the leader's clock, or raise that")

// lose ends the segment: some entries are not kept, until a checkpoint begins the next one. REQUIRES: k.mu held.
func (k *Keeper) lose(why error) {
	if !k.on {
		return
	}
	k.on = false
	k.gaps.Add(1)
	k.queue = append(k.queue, job{broken: true})
	coord.Signal(k.wake)
	k.cfg.Logger.Warn().Err(why).Uint64("entry", k.at.entry).
		Msg("the kept history has a gap: `cloudshare audit verify` cannot go beyond this entry until the next checkpoint")
}

// Checkpoint implements replica.History.
func (k *Keeper) Checkpoint(number uint64, level int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if level < keptLevel || k.on && number < k.at.entry {
		return false
	}
	if _, known := k.wanted[number]; !known {
		k.wanted[number], k.order = map[string]bool{}, append(k.order, number)
	}
	for len(k.order) > maxWanted {
		delete(k.wanted, k.order[0])
		k.order = k.order[1:]
	}
	if k.on {
		return k.grown+k.state.Load() >= k.cfg.MaxBytes/rollPart
	}
	return !time.Now().Before(k.rest)
}

// Begin implements replica.History.
func (k *Keeper) Begin(number uint64, chain replica.Chain, state coord.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on, k.at, k.grown = true, place{number, chain}, 0
	k.queue = append(k.queue, job{state: state, begins: k.at, at: k.at})
	coord.Signal(k.wake)
}

// Statements takes what members have signed; see compare.Config.Keep. Those with a state are kept, of some checkpoints.
func (k *Keeper) Statements(g compare.Group, list []compare.Statement) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list {
		s := &list[i]
		of := k.wanted[s.Entry]
		if !k.on || of == nil || of[s.Site] || !s.Hashed || !command.ValidSite(s.Site) {
			continue
		}
		of[s.Site] = true
		k.add(KindStatement, g.Lineage[:], s.Append(nil))
	}
}

// Close writes what waits. It is idempotent.
func (k *Keeper) Close() error {
	k.end.Do(func() { close(k.quit) })
	<-k.done
	return nil
}
