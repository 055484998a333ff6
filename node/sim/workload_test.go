package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/node/sim/swf"
)

// A small compressed file may hold more jobs than memory does.
func TestALogOfTooManyJobsIsRefused(t *testing.T) {
	job := "1 0 -1 60 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n"
	if w, err := readWorkload(strings.NewReader(job+job), "two", nil, 2); err != nil || len(w.Jobs) != 2 {
		t.Errorf("as many as it may have: %v", err)
	}
	_, err := readWorkload(strings.NewReader(job+job+job), "three", nil, 2)
	if !errors.Is(err, ErrBadCase) || !strings.Contains(err.Error(), "three:3: ") {
		t.Errorf("one more: %v", err)
	}
}

// Ctrl-C ends the reading of a pipe, whether nobody writes to it or somebody who
// has stopped.
func TestReadingALogEndsWithItsContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.swf")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenWorkload(ctx, pipe, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody writes: %v", err)
	}

	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // also lets the open above end
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.WriteString("no job\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if _, err := OpenWorkload(ctx, pipe, func(swf.Problem) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("the writer says no more: %v", err)
	}
}

func TestAFolderIsNoLog(t *testing.T) {
	if _, err := OpenWorkload(t.Context(), t.TempDir(), nil); !errors.Is(err, errFolder) {
		t.Error(err)
	}
}
