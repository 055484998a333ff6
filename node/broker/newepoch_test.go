package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/record"
)

// TestOldEpoch: a site that was in a later epoch takes no part in the log that the
// federation has left.
func TestOldEpoch(t *testing.T) {
	s := startSites(t, 1)[0]
	s.stop(t)
	j, err := record.OpenJournal(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Commit([]record.Write{record.Put(record.BucketMeta, record.KeyEpoch, record.Number(2))}),
		j.Close()); err != nil {
		t.Fatal(err)
	}
	s.open(t)
	<-s.Failed()
	if err := s.Err(); !errors.Is(err, ErrOldEpoch) || !strings.Contains(err.Error(), "epoch 0, and this site was in epoch 2") {
		t.Error(err)
	}
}
