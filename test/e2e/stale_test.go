package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestStaleReadsSaySo: two of three brokers are killed. What the third one shows is
// of before, and it says so, older and older, in every way in which it can be
// read; whoever cannot use that is refused. With the others back it is fresh.
func TestStaleReadsSaySo(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	await(t, "three voters", func() error {
		st, err := fed.Sites[0].Status(within(t))
		if err == nil && len(st.Voters) < 3 {
			err = fmt.Errorf("voters are %v", st.Voters)
		}
		return err
	})
	left := fed.Sites[2]
	a := submit(t, left, testbed.Spec{Command: []string{"/bin/sleep", "3600"}, Count: 9})
	awaitRunning(t, left, a.ID, 3)
	if age := ageAt(t, left, "/v1/sites"); age.stale || age.seconds < 0 {
		t.Fatalf("in contact: %+v", age)
	}
	if _, _, err := left.Do(within(t), http.MethodGet, "/v1/sites?max_staleness=0", nil, nil); err != nil {
		t.Fatal("a current read:", err)
	}

	must(t, fed.Sites[0].Kill())
	must(t, fed.Sites[1].Kill())
	await(t, "the state to be stale", func() error {
		if age := ageAt(t, left, "/v1/sites"); !age.stale {
			return fmt.Errorf("%+v", age)
		}
		return nil
	})
	first := ageAt(t, left, "/v1/sites")
	await(t, "a second to pass", func() error {
		if now := ageAt(t, left, "/v1/sites"); now.seconds < first.seconds+1 {
			return fmt.Errorf("%g s after %g s", now.seconds, first.seconds)
		}
		return nil
	})
	paths := []string{"/v1/jobs", "/v1/jobs/" + a.ID, "/v1/jobs/" + a.ID + "/tasks", "/v1/jobs/" + a.ID + "/why", "/v1/sites", "/v1/queue", "/v1/quota", "/v1/ledger", "/v1/status"}
	for _, path := range paths {
		if age := ageAt(t, left, path); !age.stale || !age.body.Stale || age.body.AgeMs < 6000 {
			t.Errorf("%s: %+v", path, age)
		}
		for _, most := range []string{"0", "2s"} {
			_, header, err := left.Do(within(t), http.MethodGet, path+"?max_staleness="+most, nil, nil)
			var refused *testbed.HTTPError
			if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable ||
				!strings.Contains(err.Error(), "too old") {
				t.Errorf("%s, at most %s: %v %v", path, most, err, header)
			}
		}
	}
	why := ageAt(t, left, "/v1/jobs/"+a.ID+"/why").body
	if !strings.Contains(why.Summary, "this broker has no contact with the leader") || why.Estimate.P90 != nil || why.Estimate.Unknown == "" {
		t.Errorf("why: %+v", why)
	}
	page, _, err := left.Do(within(t), http.MethodGet, "/queue", nil, nil)
	if err != nil || !strings.Contains(string(page), "ago: this broker has no contact with the leader") {
		t.Errorf("the page: %v %s", err, page)
	}
	for _, args := range [][]string{{"status", "--hash=false"}, {"sites"}, {"queue"}, {"why", a.ID}, {"job", a.ID}, {"jobs"}, {"tasks", a.ID}, {"ledger"}, {"policy"}, {"policy", "get"}} {
		if code, _, notes := cli(t, left, args...); code != 0 || !strings.Contains(notes, "stale: as of ") {
			t.Errorf("%v: exit %d, %s", args, code, notes)
		}
		if code, _, notes := cli(t, left, append(args, "--max-staleness", "1s")...); code == 0 || !strings.Contains(notes, "(stale)") {
			t.Errorf("%v, at most 1s: exit %d, %s", args, code, notes)
		}
	}
	if _, out, _ := cli(t, left, "sites", "-o", "json"); !strings.Contains(out, `"stale": true`) || !strings.Contains(out, `"age_ms": `) {
		t.Errorf("sites -o json: %s", out)
	}

	must(t, fed.Restart(within(t), fed.Sites[0], fed.Sites[1]))
	await(t, "the state to be fresh again", func() error {
		if age := ageAt(t, left, "/v1/sites?max_staleness=0"); age.stale {
			return fmt.Errorf("%+v", age)
		}
		return nil
	})
	if code, _, notes := cli(t, left, "sites"); code != 0 || strings.Contains(notes, "stale") {
		t.Errorf("sites: exit %d, %s", code, notes)
	}
	must(t, left.Cancel(within(t), a.ID))
	_, err = left.AwaitJob(within(t), a.ID, "cancelled")
	must(t, err)
	agree(t, fed)
}

// aged is what an answer says of its age.
type aged struct {
	seconds float64 // −1: there is none
	stale   bool
	body    struct {
		Stale    bool
		AgeMs    int64 `json:"age_ms"`
		Summary  string
		Estimate struct {
			P90     *float64 `json:"p90_seconds"`
			Unknown string
		}
	}
}

func ageAt(t *testing.T, s *testbed.Site, path string) (a aged) {
	t.Helper()
	body, header, err := s.Do(within(t), http.MethodGet, path, nil, nil)
	if err != nil {
		return aged{seconds: -1, stale: true}
	}
	a.stale = header.Get("X-CloudShare-Stale") == "true"
	if a.seconds, err = strconv.ParseFloat(header.Get("X-CloudShare-Age"), 64); err != nil {
		a.seconds = -1
	}
	must(t, json.Unmarshal(body, &a.body))
	return a
}
