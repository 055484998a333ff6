package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// motion is what the electors decide on, as far as clients look at it.
type motion struct {
	Number uint64
	What   string
	State  string
}

const passed = "passed"

// voteAgain is how long a site waits that does not know a motion yet.
const voteAgain = 50 * time.Millisecond

// pass has sites vote for what an answer says is proposed, until it has passed, and its proposer has seen that.
func (r *run) pass(ctx context.Context, by *member, answer []byte) error {
	var a struct{ Motion *motion }
	if err := json.Unmarshal(answer, &a); err != nil {
		return fmt.Errorf("decode the answer of %s: %w", by.Name, err)
	}
	if a.Motion == nil {
		return nil // it is in force
	}
	err := fmt.Errorf("motion %d has not passed", a.Motion.Number)
	for _, m := range r.members {
		if m == by {
			continue
		}
		if state, cause := vote(ctx, m, a.Motion.Number); cause != nil {
			err = errors.Join(err, cause)
		} else if state == passed {
			// Its own word is ordered after the others', so its state has them once it is answered.
			_, err = vote(ctx, by, a.Motion.Number)
			return err
		}
	}
	return err
}

// vote votes for a motion at a broker, and returns what became of it.
func vote(ctx context.Context, m *member, number uint64) (string, error) {
	path, header := fmt.Sprintf("/v1/motions/%d/vote", number), http.Header{"Content-Type": {"application/json"}}
	for {
		answer, _, err := m.Do(ctx, http.MethodPut, path, header, []byte(`{"yes":true}`))
		var refused *testbed.HTTPError
		switch {
		case err == nil:
			var v motion
			err = json.Unmarshal(answer, &v)
			return v.State, err
		case !errors.As(err, &refused):
			return "", err
		case refused.Status == http.StatusConflict: // it is decided
			return passed, nil
		case refused.Status != http.StatusNotFound:
			return "", err
		}
		if err = sleep(ctx, voteAgain); err != nil {
			return "", err
		}
	}
}

// approveAll votes at a broker for every change of the policy that is open there.
func (r *run) approveAll(ctx context.Context, m *member) error {
	open, err := m.Motions(ctx, "open")
	for _, x := range open {
		if err == nil && x.What == "policy" {
			_, err = vote(ctx, m, x.Number)
		}
	}
	return err
}
