package attempts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor/outputs"
)

// maxFirstLook is how long Adopt waits for the engine's or cluster's first answer.
const maxFirstLook = 5 * time.Second

// FirstLook is the end of an Adopt that needs what runs the tasks no longer than it
// answers: it waits a moment for looked to be closed.
func FirstLook(ctx context.Context, looked <-chan struct{}) error {
	select {
	case <-looked:
	case <-ctx.Done():
		return fmt.Errorf("adopt: %w", ctx.Err())
	case <-time.After(maxFirstLook):
	}
	return nil
}

// identityLen is the length of an identity, which is of lower-case letters and digits.
const identityLen = 16

// Identity tells what a handler has made elsewhere from what others have, whatever
// their paths are. It is made once for a directory.
func Identity(dir string) (string, error) {
	path := filepath.Join(dir, "id")
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && len(id) == identityLen && strings.Trim(id, lowerDigits) == "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := strings.ToLower(rand.Text())[:identityLen]
	return id, WriteSynced(path, []byte(id+"\n"))
}

// WriteNote writes one of the files of an attempt's folder that change: after a crash
// of the broker it is as before, or new.
func WriteNote(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	if err = os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ReadNote reads a file that WriteNote wrote, at most so many bytes of it. Besides the
// system's errors there is ErrTorn.
func ReadNote(path string, most int64, into any) error {
	f, err := outputs.OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = json.NewDecoder(io.LimitReader(f, most)).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrTorn, err)
	}
	return nil
}

// WriteSynced writes a file, and its name into its folder, for good.
func WriteSynced(path string, b []byte) error {
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	return errors.Join(Sync(path), Sync(filepath.Dir(path)))
}

// Sync has a file's content, or a folder's names, on the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
