package access

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/notefile"
)

const (
	// useGrain is how exactly a last use is known. A finer one would write more often, and tell more of people's days.
	useGrain = time.Hour
	// saveUsesAfter is for how long a use is in memory alone: what a crash may cost.
	saveUsesAfter = time.Minute
)

// uses are when tokens were taken last, in memory and in a file on which nothing rests: one that cannot be read or
// written costs dates that people look at, and no request waits for it.
type uses struct {
	path   string
	saving sync.Mutex // one at a time writes the file

	mu   sync.RWMutex
	last map[string]time.Time // by ID, whole useGrains; guarded by mu
	due  *time.Timer          // writes them, nil = the file has them; guarded by mu
}

// openUses reads the uses of the tokens that are known.
func openUses(path string, known map[string]Token) *uses {
	u := &uses{path: path, last: map[string]time.Time{}}
	saved := map[string]time.Time{}
	if _, err := notefile.Read(path, maxFile, &saved); err != nil {
		return u
	}
	for id, at := range saved {
		if _, ok := known[id]; ok {
			u.last[id] = at
		}
	}
	return u
}

// record has a token used now, and returns when that is. All but the first use within a useGrain cost a look at memory.
func (u *uses) record(id string, now time.Time) time.Time {
	now = now.UTC().Truncate(useGrain)
	if u.of(id).Equal(now) {
		return now
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[id] = now
	u.arm()
	return now
}

// arm has what is not in the file written in a while. REQUIRES: u.mu held.
func (u *uses) arm() {
	if u.due == nil {
		u.due = time.AfterFunc(saveUsesAfter, func() { _ = u.save() }) // which tries again
	}
}

func (u *uses) saveLater() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arm()
}

// of returns when a token was used last, zero if it never was.
func (u *uses) of(id string) time.Time {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.last[id]
}

func (u *uses) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.last, id)
}

// save writes what the file does not have. A use that comes meanwhile is written by the next one.
func (u *uses) save() error {
	u.saving.Lock()
	defer u.saving.Unlock()
	all, some := u.pending()
	if !some {
		return nil
	}
	if err := notefile.Write(u.path, all); err != nil {
		u.saveLater()
		return fmt.Errorf("save when the API's tokens were used: %w", err)
	}
	return nil
}

// pending returns all uses if the file lacks one, and takes them for written.
func (u *uses) pending() (all map[string]time.Time, some bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.due == nil {
		return nil, false
	}
	u.due.Stop()
	u.due = nil
	return maps.Clone(u.last), true
}
