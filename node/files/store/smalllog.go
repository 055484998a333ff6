package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/node/walfile"
)

const (
	// logFile has the small blobs whose own files are not synced yet.
	logFile = "small.log"
	// logBytes is its size: some ten thousand results of tasks, or 256 blobs of logMost. A start behind a kill writes
	// all of them again.
	logBytes = 8 << 20
	// logMost is the size up to which a blob stands in it. A larger one takes as long to be written twice as to be
	// synced by itself.
	logMost = 32 << 10
	// wipeEvery is how far apart the log is emptied because of blobs that went.
	wipeEvery = 10 * time.Second
	// retryEvery is how far apart it is tried to make the log.
	retryEvery = time.Minute
	// groupBytes is about how much one sync of it makes durable, of those that wait.
	groupBytes = 1 << 20
)

// smallLog makes small blobs durable, all that wait with one sync, until their own files are synced, all together.
// Without it each takes two syncs of its own, of its file and of its folder.
type smallLog struct {
	disk  *disk
	path  string
	bytes int64 // of the file

	begun    chan struct{} // closed once what Open has found is synced, or cannot be
	unsynced error         // why it cannot; for who has waited for begun

	mu    sync.Mutex
	idle  sync.Cond     // writing has ended
	file  *walfile.File // nil until the first blob
	retry time.Time     // until then it could not be made
	state logState
	// writing: somebody writes groups. Only he uses file meanwhile, and only while state is logOpen.
	writing bool
	group   []*logged // wait to be written
	// unplaced counts those that were taken in and whose files have no names yet. The file is emptied at none only.
	unplaced int
	// keys are the blobs in the file. removed are those of them whose files have gone since; the next group says so.
	keys    map[key]struct{}
	removed []key
	gone    bool      // some went
	wiped   time.Time // when the file was emptied last because of some that went
}

// logState says whether the log takes blobs in.
type logState uint8

const (
	logOpen   logState = iota
	logFull            // until all files of its blobs are synced
	logFailed          // until the next Open, which reads what it has
)

// logged is a blob on its way into the log.
type logged struct {
	key
	content []byte
	put     time.Time
	kept    chan bool
}

// keep makes a blob durable, and reports whether it has: otherwise its file and its folder are to be synced. If it has,
// the caller calls placed as soon as the file has its name, or never will have it.
func (l *smallLog) keep(k key, content []byte, put time.Time) bool {
	w := &logged{key: k, content: content, put: put, kept: make(chan bool, 1)}
	l.mu.Lock()
	if l.state != logOpen || l.file == nil && put.Before(l.retry) {
		l.mu.Unlock()
		return false
	}
	l.unplaced++
	l.group = append(l.group, w)
	lead := !l.writing
	l.writing = true
	l.mu.Unlock()
	if lead {
		l.writeGroup()
	}
	return <-w.kept
}

// writeGroup writes some of those that wait, and has another one write the rest. REQUIRES: l.writing is the caller's.
func (l *smallLog) writeGroup() {
	l.mu.Lock()
	group, removed := l.take()
	l.mu.Unlock()
	err := l.append(encodeLog(removed, group))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state != logOpen || err == nil: // not open: since the last group
	case errors.Is(err, walfile.ErrFull):
		l.state = logFull
	case l.file == nil && !errors.Is(err, errNoDisk):
		l.retry = group[0].put.Add(retryEvery)
	default:
		l.state = logFailed
	}
	if err != nil {
		l.removed = append(removed, l.removed...)
	}
	l.tell(group, err == nil)
	if len(l.group) > 0 {
		go l.writeGroup()
		return
	}
	l.rest()
	l.emptyIfDue()
}

// rest ends writing. REQUIRES: l.mu held, and l.writing is the caller's.
func (l *smallLog) rest() {
	l.writing = false
	l.idle.Broadcast()
}

// take returns what is written next. REQUIRES: l.mu held.
func (l *smallLog) take() (group []*logged, removed []key) {
	n, bytes := 0, 0
	for n < len(l.group) && bytes < min(groupBytes, int(l.bytes/4)) {
		bytes += len(l.group[n].content)
		n++
	}
	group, l.group = l.group[:n:n], l.group[n:]
	removed, l.removed = l.removed, nil
	return group, removed
}

// append writes a record to the file, which it makes if need be. REQUIRES: l.writing is the caller's.
func (l *smallLog) append(record []byte) (err error) {
	l.mu.Lock()
	f, state := l.file, l.state
	l.mu.Unlock()
	if state != logOpen {
		return walfile.ErrFull
	}
	if err = l.disk.at(pointLog); err != nil {
		return err
	}
	if f == nil {
		if f, err = l.make(); err != nil {
			return err
		}
		l.mu.Lock()
		l.file = f
		l.mu.Unlock()
	}
	return f.Append(record)
}

// errNoDisk reports a file system of which nobody knows what its syncs mean.
var errNoDisk = errors.New("no file system of a local disk")

// make makes the file.
func (l *smallLog) make() (*walfile.File, error) {
	f, _, err := walfile.OpenAlone(l.path, l.bytes)
	if err != nil {
		return nil, err
	}
	if !f.OnDisk() && !l.disk.noSyncAll {
		return nil, errors.Join(errNoDisk, f.Close(), l.disk.remove(logFile))
	}
	return f, nil
}

// tell tells those of a group whether they were kept. REQUIRES: l.mu held.
func (l *smallLog) tell(group []*logged, kept bool) {
	for _, w := range group {
		if kept {
			l.keys[w.key] = struct{}{}
		} else {
			l.unplaced--
		}
		w.kept <- kept
	}
}

// placed says that the file of a blob that was kept has its name, or never will have it.
func (l *smallLog) placed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unplaced--
	l.emptyIfDue()
}

// forget says that the file of a blob has gone: it is not to come back with the next Open.
func (l *smallLog) forget(k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.keys[k]; ok {
		delete(l.keys, k)
		l.removed, l.gone = append(l.removed, k), true
	}
}

// wipe empties the file soon if it has blobs that went, so that nobody can read them there.
func (l *smallLog) wipe(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == logOpen && l.gone && now.Sub(l.wiped) >= wipeEvery {
		l.state, l.wiped = logFull, now
		l.emptyIfDue()
	}
}

// emptyIfDue empties the file if it is full and all files of its blobs have their names. REQUIRES: l.mu held.
func (l *smallLog) emptyIfDue() {
	if l.state == logFull && l.unplaced == 0 && !l.writing {
		l.writing = true
		go func() { _ = l.empty() }() // state says it
	}
}

// empty syncs all files of its blobs, and has the log be empty. After an error nobody knows what the disk has of them,
// so they stay in the log. REQUIRES: l.writing is the caller's, and unplaced is 0.
func (l *smallLog) empty() error {
	err := l.disk.syncAll()
	if err == nil {
		err = l.reset()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest()
	if err != nil {
		l.state = logFailed
		return err
	}
	l.state, l.keys, l.removed, l.gone = logOpen, map[key]struct{}{}, nil, false
	return nil
}

// begin syncs all beside what follows: until then nothing that Open has found is said to be durable.
func (l *smallLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.writing = logFull, true
	go func() {
		defer close(l.begun)
		l.unsynced = l.empty()
	}()
}

// wait waits until what Open has found is durable.
func (l *smallLog) wait() error {
	<-l.begun
	return l.unsynced
}

// reset has the file be empty, without a byte of what it had. REQUIRES: the files of its blobs are synced.
func (l *smallLog) reset() error {
	if l.file == nil || l.file.Empty() {
		return nil
	}
	if err := l.disk.at(pointReset); err != nil {
		return err
	}
	return l.file.Wipe()
}

// open returns the blobs that are in the file: of each the last that was said.
func (l *smallLog) open() ([]*logged, error) {
	if _, err := l.disk.root.Lstat(logFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f, records, err := walfile.OpenAlone(l.path, l.bytes)
	if err != nil {
		return nil, err
	}
	l.file = f
	return decodeLog(records)
}

// close ends it. If all that it has is synced, it is empty then.
func (l *smallLog) close(synced bool) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing {
		l.idle.Wait()
	}
	if synced && l.unplaced == 0 && l.state != logFailed {
		err = l.reset()
	}
	l.state = logFailed
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}

func newSmallLog(d *disk, dir string, bytes int64) *smallLog {
	l := &smallLog{disk: d, path: filepath.Join(dir, logFile), bytes: bytes}
	l.keys, l.begun = map[key]struct{}{}, make(chan struct{})
	l.idle.L = &l.mu
	return l
}

// syncAll syncs all that the store's file system has, not only the store's: it is called seldom.
func (d *disk) syncAll() (err error) {
	if err = d.at(pointSyncAll); err != nil || d.noSyncAll {
		return err
	}
	return errors.Join(d.with(func(fd int) { err = unix.Syncfs(fd) }), err)
}
