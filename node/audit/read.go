package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Read returns the newest entries that a query selects, the newest first. Lines that do not read are passed over.
func (l *Log) Read(q Query) ([]Entry, error) {
	if err := l.flush(); err != nil {
		return nil, fmt.Errorf("read the audit record: %w", err)
	}
	nums, err := numbers(l.files.dir)
	if err != nil {
		return nil, fmt.Errorf("read the audit record: %w", err)
	}
	out := []Entry{}
	for _, num := range slices.Backward(nums) {
		data, err := os.ReadFile(fileName(l.files.dir, num))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have gone meanwhile
			return nil, fmt.Errorf("read the audit record: %w", err)
		}
		if out = q.search(data, out); len(out) >= q.Limit {
			break
		}
	}
	return out, nil
}

// search adds what a file has, from its end.
func (q *Query) search(data []byte, out []Entry) []Entry {
	for len(data) > 0 && len(out) < q.Limit {
		data = bytes.TrimSuffix(data, []byte{'\n'})
		at := bytes.LastIndexByte(data, '\n') + 1
		var e Entry
		if json.Unmarshal(data[at:], &e) == nil && q.selects(&e) {
			out = append(out, e)
		}
		data = data[:at]
	}
	return out
}
