package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// entryBytes is about what one small job takes in the log.
const entryBytes = 256

// syncedFile is the bare journal: append and fsync.
type syncedFile struct{ f *os.File }

func openSyncedFile(dir string) (*syncedFile, error) {
	f, err := os.Create(filepath.Join(dir, "bare-journal"))
	if err != nil {
		return nil, fmt.Errorf("open bare journal: %w", err)
	}
	return &syncedFile{f}, nil
}

// add appends one record and returns once it is on the disk.
func (s *syncedFile) add(record []byte) error {
	if _, err := s.f.Write(record); err != nil {
		return fmt.Errorf("write bare journal: %w", err)
	}
	if err := s.f.Sync(); err != nil {
		return fmt.Errorf("sync bare journal: %w", err)
	}
	return nil
}

func (s *syncedFile) close() { s.f.Close() }

// forkLoop runs /bin/true n times, at most parallel at once, begun as attr says (nil: as
// usual), and returns how many a second.
func forkLoop(ctx context.Context, n, parallel int, attr *syscall.SysProcAttr) (float64, error) {
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	close(left)
	errs := make(chan error, parallel)
	began := time.Now()
	for range parallel {
		go func() {
			var err error
			for range left {
				if err == nil {
					cmd := exec.CommandContext(ctx, "/bin/true")
					cmd.SysProcAttr = attr
					err = cmd.Run()
				}
			}
			errs <- err
		}()
	}
	for range parallel {
		if err := <-errs; err != nil {
			return 0, fmt.Errorf("run /bin/true: %w", err)
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// openBareRaft starts as many bare raft nodes as the federation has sites. All
// live in this process, which favours them.
func openBareRaft(env environment, name string) (*coordtest.BareRaft, error) {
	dir := filepath.Join(env.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of bare raft: %w", err)
	}
	return coordtest.OpenBareRaft(dir, siteCount)
}
