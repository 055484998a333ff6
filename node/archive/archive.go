package archive

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Scope says which attempts are kept.
type Scope string

// The scopes.
const (
	Own Scope = "own" // this site is owner or executor
	All Scope = "all" // of every site; home runs of others without their outcome
	Off Scope = "off" // nothing is written
)

// Errors of the archive.
var (
	// ErrOff: the broker keeps no archive.
	ErrOff = errors.New("this broker keeps no archive: set archive.scope to own or all")
	// ErrInUse: another broker has the folder open.
	ErrInUse = errors.New("archive is in use by another broker")
	errStop  = errors.New("stop")
)

// Limits of the configuration.
const (
	LeastBytes = 16 << 20
	LeastKeep  = time.Hour
	// segmentBytes is when a segment is closed, and the most that retention
	// deletes too much.
	segmentBytes = 4 << 20
	// maxOpenHome bounds the home runs that wait for their entry in the log.
	maxOpenHome = 1 << 16
	// syncEvery bounds what a crash of the machine costs: it is read from the
	// log again, if that still has it.
	syncEvery = time.Second
	// noteEvery bounds how much of the log is read again after a crash.
	noteEvery = 10 * time.Second
)

// Config of an archive.
type Config struct {
	Dir        string // made if missing
	Site       string
	Federation string // another one starts over
	Scope      Scope
	Keep       time.Duration // how long after its end an attempt is kept; 0 = 400 days
	MaxBytes   int64         // on disk, 0 = 256 MiB
	Now        func() time.Time
	Logger     zerolog.Logger // what Open found damaged
}

// DefaultConfig keeps what concerns the site for a little more than a year.
func DefaultConfig() Config {
	return Config{Scope: Own, Keep: 400 * 24 * time.Hour, MaxBytes: 256 << 20, Now: time.Now}
}

// Validate names the first thing that is wrong.
func (c *Config) Validate() error {
	switch {
	case c.Scope != Own && c.Scope != All && c.Scope != Off:
		return fmt.Errorf("archive.scope %q: must be own, all or off", string(c.Scope))
	case c.Keep < LeastKeep:
		return fmt.Errorf("archive.keep %s: must be at least %s", c.Keep, LeastKeep)
	case c.MaxBytes < LeastBytes:
		return fmt.Errorf("archive.max_bytes %d: must be at least %d", c.MaxBytes, LeastBytes)
	}
	return nil
}

// withDefaults fills zero fields.
func (c Config) withDefaults() Config {
	d := DefaultConfig()
	if c.Scope == "" {
		c.Scope = d.Scope
	}
	if c.Keep == 0 {
		c.Keep = d.Keep
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = d.MaxBytes
	}
	if c.Now == nil {
		c.Now = d.Now
	}
	return c
}

// Archive is the ended attempts of one broker in append-only segments. One
// goroutine writes, any number read.
type Archive struct {
	cfg        Config
	lock       *os.File
	federation string // of the newest head

	mu       sync.Mutex
	segments []segment // oldest first; the last one is written
	newest   uint64    // number of the last segment ever begun
	file     *os.File  // the last segment's; nil until the disk has room for one
	dirty    bool      // written since the last sync
	uncut    bool      // after size the last segment may hold what a failed write left
	lost     int64     // bytes that Open could not read
	place    node.EventID
	saved    node.EventID // the place that the file holds
	last     time.Time    // end of the newest attempt
	// homes are runs at home that are archived and not yet in the log; seen are
	// those that the log had since the last write.
	homes  map[homeKey]uint32
	seen   []homeKey
	buf    []byte
	noted  time.Time // when the place was last written
	closed bool
}

type homeKey struct {
	job  uint64
	task uint32
}

// Open opens or begins the archive in cfg.Dir. What a crash left half-written
// is cut off. Damage is no error: what is whole is kept, a damaged file is set
// aside, and the log says what is lost. With scope Off it returns an archive that
// takes and has nothing.
func Open(cfg Config) (*Archive, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Archive{cfg: cfg, homes: map[homeKey]uint32{}}
	if cfg.Scope == Off {
		return a, nil
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the archive's folder: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	a.lock = lock
	if err := a.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return a, nil
}

// Scope returns what is kept.
func (a *Archive) Scope() Scope { return a.cfg.Scope }

// Place is after the last event that the archive has taken.
func (a *Archive) Place() node.EventID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.place
}

// Last returns the end of the newest attempt, zero if there is none.
func (a *Archive) Last() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Bytes returns the archive's size on disk.
func (a *Archive) Bytes() (sum int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.segments {
		sum += s.size
	}
	return sum
}

// Append writes attempts that ended and remembers the place after them, all or
// nothing. It is synced within syncEvery by Tick.
func (a *Archive) Append(attempts []Attempt, place node.EventID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.Scope == Off || a.closed {
		a.place = place
		return nil
	}
	if len(attempts)+len(a.seen) == 0 {
		a.place = place // goes to the file with the next attempt, or Tick
		return nil
	}
	a.buf = a.buf[:0]
	var record []byte
	for i := range attempts {
		record = appendAttempt(record[:0], &attempts[i])
		a.buf = appendFrame(a.buf, record)
	}
	for _, k := range a.seen {
		a.buf = appendFrame(a.buf, appendSeen(record[:0], k))
	}
	if err := a.notePlace(place); err != nil {
		return err
	}
	for i := range attempts {
		a.took(&attempts[i])
	}
	if a.segments[len(a.segments)-1].size < segmentBytes {
		return nil
	}
	return a.beginSegment()
}

// notePlace writes what is in buf, and the place after it. REQUIRES: a.mu held.
func (a *Archive) notePlace(place node.EventID) error {
	a.buf = appendFrame(a.buf, appendPlace([]byte{kindPlace}, place))
	err := a.write(a.buf)
	if err != nil { // they will be asked for again
		for _, k := range a.seen {
			a.homes[k]++
		}
	} else {
		a.place, a.saved, a.noted = place, place, a.cfg.Now()
	}
	a.seen = a.seen[:0]
	return err
}

// took keeps the books of one attempt. REQUIRES: a.mu held.
func (a *Archive) took(t *Attempt) {
	if t.Ended.After(a.last) {
		a.last = t.Ended
	}
	if k := (homeKey{t.Job.Num, t.Task}); t.comesAgain() {
		a.homes[k]++
	}
}

// hasRoomForHome reports whether n more runs at home can wait for their entry in the
// log. The others are archived from the log alone, without their attempt and outcome.
func (a *Archive) hasRoomForHome(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.homes)+n <= maxOpenHome
}

// TakeHome reports whether a home run of this site is archived already, by its
// number in the log; each run is asked for once.
func (a *Archive) TakeHome(job command.JobID, task uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := homeKey{job.Num, task}
	if a.homes[k] == 0 {
		return false
	}
	a.forgetHome(k)
	a.seen = append(a.seen, k)
	return true
}

func (a *Archive) forgetHome(k homeKey) {
	if n := a.homes[k]; n > 1 {
		a.homes[k] = n - 1
	} else {
		delete(a.homes, k)
	}
}

// AddGap writes that part of the log is missing.
func (a *Archive) AddGap(g Gap) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.Scope == Off || a.closed {
		return nil
	}
	return a.write(appendFrame(nil, appendGap(nil, &g)))
}

// Tick syncs what was written, notes the place, and deletes what retention no
// longer covers. It is to be called about every syncEvery.
func (a *Archive) Tick() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.Scope == Off || a.closed {
		return nil
	}
	now := a.cfg.Now()
	if now.Sub(a.noted) > noteEvery {
		if err := a.savePlace(); err != nil {
			return err
		}
	}
	if err := a.sync(); err != nil {
		return err
	}
	if a.file == nil {
		return nil // the next write tries to begin one
	}
	newest := &a.segments[len(a.segments)-1]
	if newest.size > newest.begin && now.Sub(newest.created) > max(LeastKeep, a.cfg.Keep/16) {
		if err := a.beginSegment(); err != nil {
			return err
		}
	}
	return a.expire(now)
}

// sync makes what was written durable. REQUIRES: a.mu held.
func (a *Archive) sync() error {
	if !a.dirty {
		return nil
	}
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("sync archive: %w", err)
	}
	a.dirty = false
	return nil
}

// savePlace notes a place without attempts. REQUIRES: a.mu held.
func (a *Archive) savePlace() error {
	if a.saved == a.place {
		return nil
	}
	a.buf = a.buf[:0]
	return a.notePlace(a.place)
}

// Close notes the place and closes the file; idempotent.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg.Scope == Off || a.closed {
		return nil
	}
	a.closed = true
	err := errors.Join(a.savePlace(), a.sync())
	if a.file != nil {
		err = errors.Join(err, a.file.Close())
	}
	return errors.Join(err, a.lock.Close())
}

// headNow returns the head of a segment that begins now. REQUIRES: a.mu held.
func (a *Archive) headNow() head {
	h := head{created: a.cfg.Now(), federation: a.cfg.Federation, place: a.place, last: a.last}
	for k, n := range a.homes {
		h.homes = append(h.homes, homeRun{k.job, k.task, n})
	}
	slices.SortFunc(h.homes, func(x, y homeRun) int {
		return cmp.Or(cmp.Compare(x.job, y.job), cmp.Compare(x.task, y.task))
	})
	return h
}

// path of a segment.
func (a *Archive) path(n uint64) string {
	return filepath.Join(a.cfg.Dir, segmentName(n))
}

func segmentName(n uint64) string { return fmt.Sprintf("%010d.seg", n) }
