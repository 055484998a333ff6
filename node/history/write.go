package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"
)

// output is where a Keeper's writer writes.
type output struct {
	file *os.File // nil: no segment is written now
	name uint64   // of the segment
	size int64
	at   place // behind what was written
	held int64 // bytes behind size: damage and what follows it, cut off once what was there comes again
}

// errLarge reports a state that leaves too little room for the entries behind it.
var errLarge = errors.New("the state alone takes more than an eighth of history.max_bytes: raise that")

// run writes until Close.
func (k *Keeper) run() {
	defer close(k.done)
	for k.await() {
		k.writeQueued()
	}
	k.writeQueued()
	k.mu.Lock()
	k.on = false
	k.mu.Unlock()
	k.writeQueued()
	k.suspend()
}

// await waits for something to write, and lets more of it come; false: for Close.
func (k *Keeper) await() bool {
	select {
	case <-k.wake:
	case <-k.quit:
		return false
	}
	enough := time.NewTimer(gather)
	defer enough.Stop()
	select {
	case <-enough.C:
		return true
	case <-k.quit:
		return false
	}
}

// writeQueued writes what was queued until now.
func (k *Keeper) writeQueued() {
	k.mu.Lock()
	jobs := k.queue
	k.queue, k.queued = nil, 0
	k.mu.Unlock()
	for i := range jobs {
		if err := k.write(&jobs[i]); err != nil {
			k.cutOff()
			k.mu.Lock()
			k.rest = time.Now().Add(restAfter)
			k.lose(err)
			k.mu.Unlock()
		}
	}
}

// write does one job. Without a segment, entries go nowhere.
func (k *Keeper) write(j *job) (err error) {
	if err = k.leaveFree(); err != nil {
		return err
	}
	if j.state != nil {
		k.finish()
		if err = k.begin(j); err != nil {
			return err
		}
	}
	if k.out.file != nil && len(j.records) > 0 {
		if err = k.cutHeld(); err != nil {
			return err
		}
		k.dropOldest(k.cfg.MaxBytes - int64(len(j.records)))
		if _, err = k.out.file.Write(j.records); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
		k.out.size += int64(len(j.records))
		k.bytes.Add(int64(len(j.records)))
		k.out.at = j.at
	}
	if j.broken {
		k.finish()
	}
	return nil
}

// cutHeld cuts off damage and what stands behind it: the log has brought again what was there.
func (k *Keeper) cutHeld() error {
	if k.out.held == 0 {
		return nil
	}
	if err := k.out.file.Truncate(k.out.size); err != nil {
		return fmt.Errorf("cut off what is damaged of a segment: %w", err)
	}
	k.bytes.Add(-k.out.held)
	k.out.held = 0
	return nil
}

// leaveFree refuses to write where little is free: a broker whose log has no room stops.
func (k *Keeper) leaveFree() error {
	var st syscall.Statfs_t
	if k.cfg.MinFree == 0 || syscall.Statfs(k.cfg.Dir, &st) != nil {
		return nil //nolint:nilerr // writing will say what is wrong
	}
	if free := int64(min(st.Bavail, math.MaxInt64/uint64(st.Bsize))) * st.Bsize; free < k.cfg.MinFree {
		return fmt.Errorf("the file system has %d MiB free, less than min_free (%d MiB): make room", free>>20, k.cfg.MinFree>>20)
	}
	return nil
}

// begin writes the state with which the next segment begins.
func (k *Keeper) begin(j *job) error {
	defer j.state.Release()
	k.dropOldest(k.cfg.MaxBytes - k.cfg.MaxBytes/statePart)
	head, err := appendHeader(Header{
		Site: k.cfg.Site, Version: k.cfg.Version, At: time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		return err
	}
	name := k.out.name + 1
	f, err := os.OpenFile(segmentPath(k.cfg.Dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	k.out = output{file: f, name: name, at: j.begins}
	w := bufio.NewWriterSize(&limited{f, k.cfg.MaxBytes / statePart}, stateChunk)
	_, err = w.Write(head)
	if err == nil {
		err = j.state.Write(chunks{w})
	}
	if err == nil {
		_, err = w.Write(appendRecord(nil, KindBegun, binary.AppendUvarint(nil, j.begins.entry)))
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		k.out.file = nil
		return fmt.Errorf("begin a segment: %w", err)
	}
	size, err := f.Seek(0, 1)
	k.out.size = size
	k.state.Store(size)
	k.bytes.Add(size)
	return err
}

// chunks writes a state as records.
type chunks struct{ out *bufio.Writer }

// Write implements io.Writer.
func (c chunks) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		part := b[n:min(len(b), n+stateChunk)]
		n += len(part)
		_, err = c.out.Write(appendRecord(nil, KindState, part))
	}
	return n, err
}

// limited refuses more than so many bytes.
type limited struct {
	out  *os.File
	left int64
}

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	if l.left -= int64(len(b)); l.left < 0 {
		return 0, errLarge
	}
	return l.out.Write(b)
}

// finish ends the segment for good, and has the disk have it: else a later one would stand behind a gap after a loss of
// power.
func (k *Keeper) finish() {
	if k.out.file == nil {
		return
	}
	if k.out.held > 0 { // records stand where the end would
		k.closeFile(nil)
		return
	}
	_, err := k.out.file.Write(appendRecord(nil, KindEnd,
		binary.AppendUvarint(nil, k.out.at.entry), k.out.at.chain[:]))
	k.closeFile(err)
}

// suspend ends the segment for now: it goes on when the broker starts again.
func (k *Keeper) suspend() {
	if k.out.file != nil {
		k.closeFile(nil)
	}
}

func (k *Keeper) closeFile(err error) {
	if err = errors.Join(err, k.out.file.Sync(), k.out.file.Close()); err != nil {
		k.cfg.Logger.Warn().Err(err).Str("segment", k.out.file.Name()).Msg("a segment of the history may lack its end")
	}
	k.out.file, k.out.held = nil, 0
}

// cutOff ends a segment whose last write failed, behind its last whole record.
func (k *Keeper) cutOff() {
	if k.out.file == nil {
		return
	}
	var err error
	if k.out.held == 0 {
		err = k.out.file.Truncate(k.out.size)
	}
	k.closeFile(err)
}

// dropOldest removes the oldest segments while there are more bytes than so many.
func (k *Keeper) dropOldest(most int64) {
	if k.bytes.Load() <= most {
		return
	}
	all, err := segmentNames(k.cfg.Dir)
	for _, name := range all {
		if err != nil || k.bytes.Load() <= most || k.out.file != nil && name == k.out.name {
			break
		}
		path := segmentPath(k.cfg.Dir, name)
		var st os.FileInfo
		if st, err = os.Stat(path); err == nil {
			if err = os.Remove(path); err == nil {
				k.bytes.Add(-st.Size())
			}
		}
	}
	if err != nil {
		k.cfg.Logger.Warn().Err(err).Msg("the oldest segment of the history could not be removed")
	}
}
