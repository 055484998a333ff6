// Package notefile keeps what a broker would rather not forget over a restart,
// though nothing rests on it: dates, figures for people (besides all steps of a
// job's way). One JSON document a file, replaced as a whole and not synced: a
// crash of the machine may cost the latest version. It must never hold anything
// that a promise rests on, and imports nothing of the broker.
package notefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTooLarge says that a file holds more than its reader takes.
var ErrTooLarge = errors.New("the file is too large")

// Write replaces the file at path by a document of v. A reader finds the one
// before or the new one, never a part.
func Write(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	next := path + ".next"
	if err = os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// Read decodes the file at path, of at most so many bytes, into v. found is
// false without an error if there is no file; after an error v may be changed.
func Read(path string, most int64, v any) (found bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return true, err
	}
	if int64(len(text)) > most {
		return true, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	return true, json.Unmarshal(text, v)
}
