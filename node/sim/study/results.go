package study

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Results keeps a study's rows in a file as they come, one JSON line each, so
// that an interrupted study goes on where it stopped.
type Results struct {
	f     *os.File
	study *Study
	keys  []key
	rows  map[int]*Row
}

// OpenResults opens or begins a study's results file. One of another study is
// refused (ErrOtherStudy), and one that is being written (ErrBusy); a line cut off by a crash is dropped, and a damaged
// one not taken: its instance is played again.
func OpenResults(path string, s *Study) (*Results, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil { // gone with the file's last user
		return nil, errors.Join(fmt.Errorf("open results %s: %w", path, sim.ErrBusy), f.Close())
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // a device or a pipe may have no end
		return nil, errors.Join(fmt.Errorf("open results %s: %w", path, cmp.Or(err, sim.ErrNoFile)), f.Close())
	}
	r := &Results{f: f, study: s, keys: s.keys(), rows: map[int]*Row{}}
	if err := r.load(s.Mark()); err != nil {
		return nil, errors.Join(fmt.Errorf("read results %s: %w", path, err), f.Close())
	}
	return r, nil
}

// load reads what is there and leaves the file's end after its last whole line.
func (r *Results) load(mark string) error {
	in := bufio.NewReader(r.f)
	first, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err != nil || string(bytes.TrimSpace(first)) != fmt.Sprintf("%q", mark) {
		return r.writeHeader(first, mark)
	}
	end := int64(len(first))
	for err == nil {
		var line []byte
		if line, err = in.ReadBytes('\n'); err == nil {
			r.readRow(line)
			end += int64(len(line))
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if err = r.f.Truncate(end); err != nil {
		return err
	}
	_, err = r.f.Seek(end, io.SeekStart)
	return err
}

// writeHeader writes the first line of a new file.
func (r *Results) writeHeader(found []byte, mark string) error {
	if len(found) > 0 {
		return fmt.Errorf("%w: this one is %s; use another folder, or delete the file", sim.ErrOtherStudy, mark)
	}
	if _, err := fmt.Fprintf(r.f, "%q\n", mark); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// readRow reads a row's line, unless it is not what this study would have written.
func (r *Results) readRow(line []byte) {
	row := &Row{}
	if json.Unmarshal(line, row) == nil && r.belongs(row) {
		r.rows[row.Index] = row
	}
}

// belongs reports whether a row is of its instance, and whole: as many sites and
// policies as the study has, and waits and φ that add up.
func (r *Results) belongs(row *Row) bool {
	if row.Index < 0 || row.Index >= len(r.keys) {
		return false
	}
	k, sites := r.keys[row.Index], r.study.Setup.Sites
	if row.Log != r.study.Workloads[k.workload].Name ||
		(key{k.workload, row.Period, row.Mapping, row.Load, row.Scenario}) != k ||
		row.Scale != sim.Denominator(sites) || row.Total < 0 || row.Total > math.MaxInt64/row.Scale ||
		len(row.Cores) != sites || len(row.Phi) != sites || len(row.Waits) != len(r.study.Policies) ||
		sim.Sum(row.Phi) != row.Scale*row.Total {
		return false
	}
	for _, waits := range row.Waits {
		if len(waits) != sites || slices.Min(waits) < 0 || sim.Sum(waits) != row.Total && r.study.Setup.Unit > 0 {
			return false
		}
	}
	return r.study.measured(row)
}

// Done returns the instances that are there already.
func (r *Results) Done() map[int]bool {
	done := make(map[int]bool, len(r.rows))
	for i := range r.rows {
		done[i] = true
	}
	return done
}

// Save appends a row.
func (r *Results) Save(row *Row) error {
	line, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if _, err := r.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write results: %w; make room, and the same command goes on from here", err)
	}
	r.rows[row.Index] = row
	return nil
}

// Rows returns what is there, by index.
func (r *Results) Rows() []*Row {
	rows := make([]*Row, 0, len(r.rows))
	for i := range r.keys {
		if row := r.rows[i]; row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// Close closes the file.
func (r *Results) Close() error { return r.f.Close() }
