package jobspec

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestRetryTravels: what a job says of its retries comes back from its payload, and makes another job.
func TestRetryTravels(t *testing.T) {
	text := `{"command":["a"],"parallel":3,"retry":{"max_attempts":4,"on_loss":"never","backoff":"10s","not_on":[2,"64-70","71-78"]}}`
	s := parsed(t, text)
	if s.Retry.Backoff != 10*time.Second || s.Retry.BackoffMax != DefaultBackoffMax || !s.Gated() || s.Parallel != 3 {
		t.Errorf("%+v", s.Retry)
	}
	back, err := ReadTexts(s.publicText(), s.appendSealed(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := back.shape(s.jobSpec("a", 1, 0, nil)); err != nil || back.Meaning() != s.Meaning() {
		t.Errorf("%+v, %v", back.Retry, err)
	}
	if got := strings.Join(back.Retry.NotOn.Texts(), ","); got != "2,64-78" {
		t.Error(got)
	}
	for _, other := range []string{
		`{"command":["a"],"retry":{"max_attempts":4,"on_loss":"never","backoff":"10s","not_on":["2","64-78"]}}`,
		`{"command":["a"],"parallel":3,"retry":{"max_attempts":4,"on_loss":"never","backoff":"11s","not_on":["2","64-78"]}}`,
		`{"command":["a"],"parallel":3,"retry":{"max_attempts":4,"on_loss":"never","backoff":"10s","only_on":["2","64-78"]}}`,
	} {
		if o := parsed(t, other); o.Meaning() == s.Meaning() {
			t.Errorf("%s means the same", other)
		}
	}
	if plain := parsed(t, `{"command":["a"],"retry":{"max_attempts":4,"backoff":"0s","only_on":[]}}`); plain.Gated() {
		t.Error("a plain job is gated")
	}
	if long := parsed(t, `{"command":["a"],"retry":{"max_attempts":2,"backoff":"1h"}}`); long.Retry.BackoffMax != time.Hour {
		t.Error(long.Retry.BackoffMax)
	}
}

// TestRetryByCode: one of both lists says after which exit codes a task is tried again.
func TestRetryByCode(t *testing.T) {
	not := parsed(t, `{"command":["a"],"retry":{"max_attempts":2,"not_on":["2","64-78"]}}`).Retry
	only := parsed(t, `{"command":["a"],"retry":{"max_attempts":2,"only_on":["137"]}}`).Retry
	for code, want := range map[int]bool{0: true, 2: false, 63: true, 64: false, 78: false, 79: true, 255: true} {
		if not.Again(code) != want || only.Again(code) != (code == 137) {
			t.Errorf("exit %d: %t, %t", code, not.Again(code), only.Again(code))
		}
	}
}

// TestBadRetryIsRefused: each error names the field, and says what is right.
func TestBadRetryIsRefused(t *testing.T) {
	for retry, want := range map[string]string{
		`"backoff":10`:                                 `retry.backoff: must be a duration such as "10s" or "5m" (got 10)`,
		`"backoff":"-1s"`:                              `retry.backoff: must be a duration from 100ms to 168h`,
		`"backoff":"1ms"`:                              `retry.backoff: must be a duration from 100ms to 168h`,
		`"backoff":"8d"`:                               `retry.backoff: must be a duration from 100ms to 168h`,
		`"backoff_max":"1m"`:                           `retry.backoff_max: needs retry.backoff, which it bounds`,
		`"backoff":"2m","backoff_max":"1m"`:            `retry.backoff_max: must not be shorter than retry.backoff, which is 2m0s`,
		`"only_on":"2"`:                                `retry.only_on: must be a list of exit codes and ranges`,
		`"only_on":["x"]`:                              `retry.only_on.0: must be an exit code from 0 to 255`,
		`"not_on":["1",256]`:                           `retry.not_on.1: must be an exit code from 0 to 255`,
		`"not_on":["9-3"]`:                             `retry.not_on.0: must be an exit code from 0 to 255`,
		`"not_on":[-1]`:                                `retry.not_on.0: must be an exit code from 0 to 255`,
		`"not_on":[2.5]`:                               `retry.not_on.0: must be an exit code from 0 to 255`,
		`"only_on":[1],"not_on":[2]`:                   `retry: must not have both only_on and not_on`,
		`"not_on":[` + strings.Repeat("1,", 64) + `1]`: `retry.not_on: names more than 64 codes and ranges`,
		`"max_attempts":1,"backoff":"1s"`:              `retry: has backoff, only_on or not_on, and max_attempts 1`,
		`"again":true`:                                 `retry.again: is not a field of a job`,
	} {
		if !strings.Contains(retry, "max_attempts") {
			retry = `"max_attempts":3,` + retry
		}
		_, err := ParseSpec([]byte(`{"command":["a"],"retry":{` + retry + `}}`))
		bad, ok := errors.AsType[*SpecError](err)
		if !ok || bad.Malformed || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v, want %s…", retry, err, want)
		}
	}
	for parallel, want := range map[string]string{
		`0`: `parallel: must be a whole number from 1 to 1000000 (got 0)`, `"2"`: `parallel: must be a whole number`,
	} {
		if _, err := ParseSpec([]byte(`{"command":["a"],"parallel":` + parallel + `}`)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", parallel, err)
		}
	}
}
