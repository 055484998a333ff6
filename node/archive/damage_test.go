package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node"
)

// toldLog is the log of a federation in small: entry n ended job n, but for
// homeEntry, which tells of a home run that was archived with entry 1.
const (
	toldLog   = 8
	homeEntry = 7
)

// replayLog archives what came after the archive's place, as a Collector does.
func replayLog(t *testing.T, a *Archive) {
	t.Helper()
	for n := a.Place().Entry + 1; n <= toldLog; n++ {
		batch := []Attempt{ended(n, time.Duration(n)*time.Second)}
		switch {
		case n == 1:
			batch = append(batch, homeAttempt())
		case n == homeEntry && a.TakeHome(homeAttempt().Job, 3):
			batch = nil
		case n == homeEntry:
			batch = []Attempt{homeAttempt()}
		}
		must(t, a.Append(batch, node.EventID{Entry: n, N: 1}))
	}
}

func homeAttempt() Attempt {
	home := ended(100, time.Second)
	home.Home, home.EndedMs, home.Task = true, -1, 3
	return home
}

// twoSegments is an archive that is closed after entry 6, with entries 1 to 3 in
// its first segment, and returns their files.
func twoSegments(t *testing.T, dir string, c *clock) (paths [2]string) {
	t.Helper()
	a := openTest(t, dir, c, nil)
	for n := uint64(1); n <= 6; n++ {
		batch := []Attempt{ended(n, time.Duration(n)*time.Second)}
		if n == 1 {
			batch = append(batch, homeAttempt())
		}
		must(t, a.Append(batch, node.EventID{Entry: n, N: 1}))
		if n == 3 {
			c.at = epoch.Add(30 * 24 * time.Hour)
			must(t, a.Tick()) // begins another segment
		}
	}
	must(t, a.Close())
	return [2]string{filepath.Join(dir, "0000000001.seg"), filepath.Join(dir, "0000000002.seg")}
}

// counts is how often each job stands in an archive.
func counts(t *testing.T, a *Archive) (map[uint64]int, []Gap) {
	t.Helper()
	found := map[uint64]int{}
	gaps, err := a.Scan(t.Context(), Query{}, func(x *Attempt) error { found[x.Job.Num]++; return nil })
	must(t, err)
	return found, gaps
}

// checkDamaged opens an archive with one damaged file, has it go on, and returns
// the jobs that are missing. None may be there twice, and what is missing is told.
func checkDamaged(t *testing.T, what, dir string, c *clock) (missing []uint64) {
	t.Helper()
	var told bytes.Buffer
	a := openTest(t, dir, c, func(cfg *Config) { cfg.Logger = zerolog.New(&told) })
	defer a.Close()
	replayLog(t, a)
	must(t, a.Tick())
	found, gaps := counts(t, a)
	for job, n := range found {
		if n > 1 {
			t.Errorf("%s: job %d is counted %d times", what, job, n)
		}
	}
	for _, job := range []uint64{1, 2, 3, 4, 5, 6, 8, 100} {
		if found[job] == 0 {
			missing = append(missing, job)
		}
	}
	if lost, _ := a.Damage(); len(missing) > 0 && (lost == 0 || len(gaps) == 0) {
		t.Errorf("%s: jobs %v are missing, lost %d bytes, gaps %v:\n%s", what, missing, lost, gaps, told.String())
	}
	if told.Len() == 0 {
		t.Errorf("%s: not a word in the log", what)
	}
	return missing
}

// Found by review: a torn head of a segment had all of the segment before it
// counted twice, and any damage to a head deleted its segment without a word.
// Whatever byte of a segment is damaged, and wherever its file is cut, nothing is
// counted twice; a record costs itself at most, a head nothing. Of entries, every
// third byte is tried.
func TestDamagedByteLosesOneRecord(t *testing.T) {
	for segment := range 2 {
		dir, c := t.TempDir(), &clock{epoch}
		path := twoSegments(t, dir, c)[segment]
		whole := readDir(t, dir)
		heads := headBytes(t, path)
		for at := range whole[path] {
			if at >= heads && at%3 > 0 {
				continue
			}
			what := fmt.Sprintf("segment %d, byte %d of %d, heads end at %d", segment+1, at, len(whole[path]), heads)
			damaged := slices.Clone(whole[path])
			damaged[at] ^= 0x5a
			restore(t, dir, whole)
			must(t, os.WriteFile(path, damaged, 0o600))
			if segment == 0 && at >= heads/2 { // seen when it is read
				a := openTest(t, dir, c, nil)
				found, gaps := counts(t, a)
				must(t, a.Close())
				if len(found) < 6 || len(found) < 7 && len(gaps) == 0 || at < heads && len(found) < 7 {
					t.Errorf("%s: found %v, gaps %v", what, found, gaps)
				}
				continue
			}
			missing := checkDamaged(t, what, dir, c)
			if len(missing) > 1 || at < heads && len(missing) > 0 {
				t.Errorf("%s: jobs %v are missing", what, missing)
			}
			aside, _ := filepath.Glob(filepath.Join(dir, asideDir, "*.seg"))
			if len(aside) != 1 && at < heads {
				t.Fatalf("%s: set aside: %v", what, aside)
			}
			if len(aside) == 1 {
				if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, damaged) {
					t.Errorf("%s: the damaged file is not what was set aside: %v", what, err)
				}
			}
		}
	}
}

func TestCutSegmentCountsNothingTwice(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	path := twoSegments(t, dir, c)[1]
	whole := readDir(t, dir)
	for n := range whole[path] {
		restore(t, dir, whole)
		must(t, os.WriteFile(path, whole[path][:n], 0o600))
		a := openTest(t, dir, c, nil)
		replayLog(t, a)
		found, gaps := counts(t, a)
		must(t, a.Close())
		if len(found) != 8 || len(gaps) > 0 {
			t.Errorf("cut at %d of %d: %v, gaps %v", n, len(whole[path]), found, gaps)
		}
		for job, n := range found {
			if n > 1 {
				t.Errorf("cut at %d of %d: job %d is counted %d times", n, len(whole[path]), job, n)
			}
		}
	}
}

// TestCutOldSegment: what a cut leaves of an older segment stays, whatever is cut.
func TestCutOldSegment(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	path := twoSegments(t, dir, c)[0]
	whole := readDir(t, dir)
	for n := 0; n < len(whole[path]); n += 5 {
		restore(t, dir, whole)
		must(t, os.WriteFile(path, whole[path][:n], 0o600))
		a := openTest(t, dir, c, nil)
		replayLog(t, a)
		found, _ := counts(t, a)
		must(t, a.Close())
		for _, job := range []uint64{4, 5, 6, 8} {
			if found[job] != 1 {
				t.Errorf("cut at %d of %d: job %d is counted %d times", n, len(whole[path]), job, found[job])
			}
		}
	}
}

// TestBothHeadsDamaged: what is behind them is kept, and where to go on follows
// from the segment before.
func TestBothHeadsDamaged(t *testing.T) {
	for segment := range 2 {
		dir, c := t.TempDir(), &clock{epoch}
		path := twoSegments(t, dir, c)[segment]
		b, err := os.ReadFile(path)
		must(t, err)
		clear(b[:headBytes(t, path)])
		must(t, os.WriteFile(path, b, 0o600))
		if missing := checkDamaged(t, fmt.Sprintf("segment %d", segment+1), dir, c); len(missing) > 0 {
			t.Errorf("segment %d: jobs %v are missing", segment+1, missing)
		}
		a := openTest(t, dir, c, nil) // and again: it is mended
		if _, files := a.Damage(); files != 1 {
			t.Errorf("segment %d: %d files are set aside", segment+1, files)
		}
		must(t, a.Close())
	}
}

// TestDamagedFilesAreBounded: the newest ones are kept.
func TestDamagedFilesAreBounded(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	path := twoSegments(t, dir, c)[1]
	for range maxAside + 3 {
		b, err := os.ReadFile(path)
		must(t, err)
		b[3] ^= 1
		must(t, os.WriteFile(path, b, 0o600))
		c.at = c.at.Add(time.Second)
		must(t, openTest(t, dir, c, nil).Close())
	}
	files, _ := asideFiles(filepath.Join(dir, asideDir))
	if len(files) != maxAside || !strings.HasPrefix(files[maxAside-1].Name(), c.at.UTC().Format("20060102T150405")) {
		t.Errorf("%d files are set aside, the last is %v", len(files), files[len(files)-1].Name())
	}
}

// TestUnmendableSegmentIsRead: without room for the mended file, or the right to
// write it, the archive opens all the same and what can be read is.
func TestUnmendableSegmentIsRead(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	path := twoSegments(t, dir, c)[0]
	b, err := os.ReadFile(path)
	must(t, err)
	b[0] ^= 1
	must(t, os.WriteFile(path, b, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, asideDir), nil, 0o600)) // no folder can be made
	a := openTest(t, dir, c, nil)
	replayLog(t, a)
	found, _ := counts(t, a)
	for _, job := range []uint64{1, 2, 3, 4, 5, 6, 8, 100} {
		if found[job] != 1 {
			t.Errorf("job %d is counted %d times", job, found[job])
		}
	}
}

// TestUnmendableEndIsCountedOnce: a last segment is damaged and ends within a batch,
// and no file can be set aside. What the log tells again must not come back from
// the damaged file when that is not the last any more.
func TestUnmendableEndIsCountedOnce(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	path := twoSegments(t, dir, c)[1]
	b, err := os.ReadFile(path)
	must(t, err)
	b[headBytes(t, path)+frameHead+1] ^= 1 // a flag of entry 4
	for _, n := range []uint64{7, 8} {     // written, but not the place after them
		x := ended(n, time.Duration(n)*time.Second)
		b = appendFrame(b, appendAttempt(nil, &x))
	}
	must(t, os.WriteFile(path, b, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, asideDir), nil, 0o600)) // no folder can be made
	for start := range 3 {
		a := openTest(t, dir, c, nil)
		replayLog(t, a)
		found, _ := counts(t, a)
		must(t, a.Close())
		for _, job := range []uint64{5, 6, 8} {
			if found[job] != 1 {
				t.Errorf("start %d: job %d is counted %d times", start, job, found[job])
			}
		}
	}
}

// TestForgedFrameInAName: a record that is whole is not searched for frames.
func TestForgedFrameInAName(t *testing.T) {
	dir, c := t.TempDir(), &clock{epoch}
	a := openTest(t, dir, c, nil)
	forged, x := ended(66, time.Second), ended(1, time.Second)
	x.Reason = string(appendFrame(nil, appendAttempt(nil, &forged)))
	must(t, a.Append([]Attempt{x}, node.EventID{Entry: 1, N: 1}))
	if jobs, gaps := all(t, a, Query{}); jobs != "1" || len(gaps) > 0 {
		t.Errorf("%s, gaps %v", jobs, gaps)
	}
}

// headBytes is how long a segment's head and its copy are.
func headBytes(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	c := inspect(f, info.Size())
	return int(c.begin)
}

func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	must(t, err)
	for _, p := range paths {
		out[p], err = os.ReadFile(p)
		must(t, err)
	}
	return out
}

func restore(t *testing.T, dir string, whole map[string][]byte) {
	t.Helper()
	for p := range readDir(t, dir) {
		must(t, os.Remove(p))
	}
	must(t, os.RemoveAll(filepath.Join(dir, asideDir)))
	for p, b := range whole {
		must(t, os.WriteFile(p, b, 0o600))
	}
}
