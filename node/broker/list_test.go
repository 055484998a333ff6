package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/seal"
)

// pendingSpec is a job that waits to be published.
func (s *testSite) pendingSpec(t *testing.T, num int, name string) command.JobSpec {
	t.Helper()
	secrets, err := s.journal.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	sealer := seal.New(secrets[0], seal.Whose{Federation: [16]byte{9}, Site: s.name})
	return command.JobSpec{
		Num: uint64(num), Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000},
		Payload: sealer.Seal([]byte("{}"), []byte(`{"name":"`+name+`"}`)),
	}
}

// reopenAlone starts the site's broker again, without a quorum and with jobs that it had
// promised to publish.
func (s *testSite) reopenAlone(t *testing.T, pending []command.JobSpec) {
	t.Helper()
	dir := s.dir
	s.stop(t)
	s.group.Cut(s.name)
	j, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	var writes []record.Write
	for jobs := range slices.Chunk(pending, 1000) {
		cmd := command.Command{ID: command.ID{Site: s.name, Incarnation: 1, Seq: 1}, Body: &command.Submit{Jobs: jobs}}
		writes = append(writes, record.Put(record.BucketPublishing, record.Number(jobs[0].Num),
			command.Append(nil, cmd)))
	}
	if err := errors.Join(j.Commit(writes), j.Close()); err != nil {
		t.Fatal(err)
	}
	s.handler = s.handler.reopen()
	s.open(t)
}

// Found by review: a thousand large jobs at home made a page of a gigabyte.
func TestAPageOfLargeOwnJobsIsShort(t *testing.T) {
	a := startSites(t, 1)[0]
	name := strings.Repeat("x", fsm.MaxPageBytes/4) // three fit
	pending := make([]command.JobSpec, 7)
	for i := range pending {
		pending[i] = a.pendingSpec(t, i+1, name)
	}
	a.reopenAlone(t, pending)
	for _, q := range []node.JobQuery{{Limit: 1000}, {Limit: 1000, Name: "x"}} {
		var got [][]uint64
		for more := true; more; more = q.Cursor != "" {
			page, err := a.Jobs(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var nums []uint64
			for _, j := range page.Items {
				nums = append(nums, j.ID.Num)
			}
			got, q.Cursor = append(got, nums), page.Next
		}
		if want := "[[7 6 5] [4 3 2] [1]]"; fmt.Sprint(got) != want {
			t.Errorf("name %q: pages %v, want %s", q.Name, got, want)
		}
	}
}
