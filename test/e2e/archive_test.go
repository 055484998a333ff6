package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// archived is what the test looks at of one line of an archive.
type archived struct {
	Job, Owner, Site, Outcome string
	Task, Attempt             uint32
	Home, Final               bool
	CPU                       int64
	Charged                   int64 `json:"charged_ms"`
	Gap                       any
}

// TestArchiveSurvivesItsBroker: a broker that is killed and comes back has every
// attempt that its site owned or ran exactly once, they add up to the ledger, and
// its timeline shows them all, also the one at home, of which no log tells.
func TestArchiveSurvivesItsBroker(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 1)
	first, second := fed.Sites[0], fed.Sites[1]
	nap := []string{"/bin/sh", "-c", "sleep 0.2"}
	home := submit(t, first, testbed.Spec{Command: nap})
	awaitEnd(t, first, home.ID)
	bag := submit(t, first, testbed.Spec{Command: nap, Count: 4})
	awaitEnd(t, first, bag.ID)
	awaitArchive(t, first, 5)
	must(t, first.Kill())
	must(t, fed.Restart(within(t), first))
	lent := submit(t, second, testbed.Spec{Command: nap, Count: 2, Sites: &testbed.Where{Only: []string{first.Name}}})
	awaitEnd(t, second, lent.ID)

	await(t, "seven attempts in the timeline", func() error {
		page, _, err := first.Do(t.Context(), http.MethodGet, "/timeline", nil, nil)
		if err == nil && !(bytes.Contains(page, []byte("<title>"+home.ID+"/0 attempt 1")) && bytes.Contains(page, []byte(">7 attempts of"))) {
			err = fmt.Errorf("the page is\n%s", page)
		}
		return err
	})
	seen, used := map[string]bool{}, map[string]int64{}
	for _, l := range awaitArchive(t, first, 7) {
		name := fmt.Sprintf("%s/%d.%d", l.Job, l.Task, l.Attempt)
		if seen[name] {
			t.Errorf("%s is archived twice", name)
		}
		seen[name] = true
		used[l.Owner+" at "+l.Site] += l.CPU * 1000 * l.Charged
	}
	ledger, err := first.Ledger(within(t))
	must(t, err)
	for _, c := range ledger.Matrix {
		cell := c.Owner + " at " + c.Executor
		if want, err := strconv.ParseInt(c.A, 10, 64); err != nil || used[cell] != want {
			t.Errorf("%s: the archive has %d, the ledger %s", cell, used[cell], c.A)
		}
	}
}

// awaitArchive returns a site's archive once it has so many tasks that ended,
// and the ledger as many.
func awaitArchive(t *testing.T, s *testbed.Site, tasks int) (lines []archived) {
	t.Helper()
	await(t, fmt.Sprintf("%d archived tasks at %s", tasks, s.Name), func() error {
		data, _, err := s.Do(t.Context(), http.MethodGet, "/v1/archive", nil, nil)
		if err != nil {
			return err
		}
		ended := 0
		lines = nil
		for dec := json.NewDecoder(bytes.NewReader(data)); ; {
			var l archived
			if err = dec.Decode(&l); err != nil {
				break
			}
			if l.Gap != nil {
				return fmt.Errorf("a gap: %v", l.Gap)
			}
			if lines = append(lines, l); l.Final {
				ended++
			}
		}
		ledger, cause := s.Ledger(t.Context())
		var charged uint64
		for _, c := range ledger.Matrix {
			charged += c.Tasks
		}
		if cause != nil || !errors.Is(err, io.EOF) || ended != tasks || charged != uint64(tasks) {
			return errors.Join(fmt.Errorf("%d tasks ended and %d are charged", ended, charged), cause)
		}
		return nil
	})
	return lines
}
