package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Results keeps a study's rows in a file as they come, one JSON line each, so
// that an interrupted study goes on where it stopped.
type Results struct {
	f    *os.File
	rows map[int]*Row
	size int
}

// OpenResults opens or begins a study's results file. One of another study is
// refused (ErrOtherStudy); a line cut off by a crash is dropped.
func OpenResults(path string, s *Study) (*Results, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	r := &Results{f: f, rows: map[int]*Row{}, size: s.Size()}
	if err := r.load(s.Mark()); err != nil {
		return nil, errors.Join(fmt.Errorf("read results %s: %w", path, err), f.Close())
	}
	return r, nil
}

// load reads what is there and leaves the file's end after its last whole line.
func (r *Results) load(mark string) error {
	in := bufio.NewReader(r.f)
	var end int64
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || !r.take(n, line, mark) {
			if n == 0 {
				return r.begin(line, mark)
			}
			break
		}
		end += int64(len(line))
	}
	if err := r.f.Truncate(end); err != nil {
		return err
	}
	_, err := r.f.Seek(end, io.SeekStart)
	return err
}

// begin writes the first line of a new file.
func (r *Results) begin(found []byte, mark string) error {
	if len(found) > 0 {
		return fmt.Errorf("%w: this one is %s; use another folder, or delete the file", ErrOtherStudy, mark)
	}
	if _, err := fmt.Fprintf(r.f, "%q\n", mark); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// take reads line n; false if it is not what this study would have written.
func (r *Results) take(n int, line []byte, mark string) bool {
	if n == 0 {
		return string(bytes.TrimSpace(line)) == fmt.Sprintf("%q", mark)
	}
	row := &Row{}
	if json.Unmarshal(line, row) != nil || row.Index < 0 || row.Index >= r.size {
		return false
	}
	r.rows[row.Index] = row
	return true
}

// Done are the instances that are there already.
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
		return fmt.Errorf("write results: %w", err)
	}
	r.rows[row.Index] = row
	return nil
}

// Rows returns what is there, by index.
func (r *Results) Rows() []*Row {
	rows := make([]*Row, 0, len(r.rows))
	for i := range r.size {
		if row := r.rows[i]; row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// Close closes the file.
func (r *Results) Close() error { return r.f.Close() }
