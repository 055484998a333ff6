package core

import (
	"testing"

	"github.com/cloudshare/cloudshare/node/journal"
	"github.com/cloudshare/cloudshare/node/record"
)

// unsynced is a journal that loses nothing but in a crash of the machine.
func unsynced(dir string) (*record.Journal, error) {
	return record.OpenWith(journal.Options{Dir: dir, NoSync: true})
}

// journaledEpoch is the epoch that a site was last ready for.
func journaledEpoch(t *testing.T, j *record.Journal) uint64 {
	t.Helper()
	epoch, err := j.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}
