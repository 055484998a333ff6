package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/record"
)

// pendingSpec is a job that waits to be published.
func pendingSpec(num int, name string) fsm.JobSpec {
	return fsm.JobSpec{Num: uint64(num), Count: 1, MaxAttempts: 1, Need: fsm.Resources{MilliCPU: 1000}, Payload: []byte(`{"name":"` + name + `"}`)}
}

// reopenAlone starts the site's broker again, without a quorum and with jobs that it had
// promised to publish.
func (s *testSite) reopenAlone(t *testing.T, pending []fsm.JobSpec) {
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
		cmd := fsm.Command{ID: fsm.CommandID{Site: s.name, Incarnation: 1, Seq: 1}, Body: &fsm.Submit{Jobs: jobs}}
		writes = append(writes, record.Put(record.BucketPublishing, record.Number(jobs[0].Num), fsm.AppendCommand(nil, cmd)))
	}
	if err := errors.Join(j.Commit(writes), j.Close()); err != nil {
		t.Fatal(err)
	}
	s.handler = s.handler.reopen()
	s.open(t)
}

// A filter that matches next to nothing walks on in looks of a bounded size.
func TestAFilterThatMatchesLittle(t *testing.T) {
	a := startSites(t, 1)[0]
	const jobs = own.Steps*ownLooks + 10
	pending := make([]fsm.JobSpec, jobs)
	for i := range pending {
		pending[i] = pendingSpec(i+1, "x")
	}
	pending[4] = pendingSpec(5, "rare")
	a.reopenAlone(t, pending)
	q := node.JobQuery{Limit: 10, Name: "rare"}
	own, err := a.ownPage(t.Context(), q, cursor{})
	if err != nil || len(own.jobs) != 0 || own.rest == 0 {
		t.Fatalf("a page of %d jobs, the rest below %d, %v", len(own.jobs), own.rest, err)
	}
	page, err := a.Jobs(t.Context(), q) // passes over the empty page
	if err != nil || len(page.Items) != 1 || page.Items[0].ID.Num != 5 || page.Next != "" {
		t.Errorf("found %+v, %v", page, err)
	}
}

// Found by review: a thousand large jobs at home made a page of a gigabyte.
func TestAPageOfLargeOwnJobsIsShort(t *testing.T) {
	a := startSites(t, 1)[0]
	name := strings.Repeat("x", fsm.MaxPageBytes/4) // three fit
	pending := make([]fsm.JobSpec, 7)
	for i := range pending {
		pending[i] = pendingSpec(i+1, name)
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

// Found by review: where one of the lists was cut short, older jobs of the
// other one came before its next ones.
func TestMergedPagesAreNewestFirst(t *testing.T) {
	fed, own := []int{100, 90, 85, 40, 10}, []int{95, 30, 20, 5}
	part := func(times []int, before uint64, n int) (page []listed, rest uint64) {
		for _, at := range times {
			if before > 0 && uint64(at) >= before {
				continue
			}
			if len(page) == n {
				return page, page[n-1].place
			}
			page = append(page, listed{node.Job{SubmittedAt: time.Unix(int64(at), 0)}, uint64(at)})
		}
		return page, 0
	}
	for fedSize := 1; fedSize < 6; fedSize++ {
		for ownSize := 1; ownSize < 6; ownSize++ {
			var got []int64
			next := ""
			for pages := 0; pages == 0 || next != ""; pages++ {
				cur, err := parseCursor(next)
				if err != nil || pages > 20 {
					t.Fatalf("page %d after %q: %v", pages, next, err)
				}
				var theirs []listed
				var mine ownPage
				fedNext := uint64(0)
				if !cur.fedDone {
					theirs, fedNext = part(fed, cur.seq, fedSize)
				}
				if !cur.ownDone {
					mine.jobs, mine.rest = part(own, cur.num, ownSize)
				}
				page := merge(theirs, mine, fedNext, 3, cur)
				for _, j := range page.Items {
					got = append(got, j.SubmittedAt.Unix())
				}
				next = page.Next
			}
			if want := []int64{100, 95, 90, 85, 40, 30, 20, 10, 5}; !slices.Equal(got, want) {
				t.Errorf("by %d and %d: %v, want %v", fedSize, ownSize, got, want)
			}
		}
	}
}
