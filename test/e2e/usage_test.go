package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestUsageIsTold: what a task used is measured where it ran, at home and at another site, and its owner is told.
func TestUsageIsTold(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 1)
	home, other := fed.Sites[0], fed.Sites[1]
	busy := []string{"/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"}
	for _, where := range []*testbed.Site{home, other} {
		job := submit(t, home, testbed.Spec{Command: busy, Sites: &testbed.Where{Only: []string{where.Name}}})
		awaitEnd(t, home, job.ID)
		await(t, "what a task used at "+where.Name, func() error {
			answer, _, err := home.Do(t.Context(), http.MethodGet, "/v1/jobs/"+job.ID+"/usage", nil, nil)
			if err != nil {
				return err
			}
			var u struct {
				Attempts uint64
				CPU      float64 `json:"cpu_hours"`
				Peak     int64   `json:"peak_memory_bytes"`
			}
			if err = json.Unmarshal(answer, &u); err == nil && (u.Attempts != 1 || u.CPU <= 0 || u.Peak <= 0) {
				err = fmt.Errorf("it says %s", answer)
			}
			return err
		})
	}
}
