package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/publish"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// cutOff has a site's state be as old as after so long without contact. Tests that look at its words take hours,
// which no busy machine adds.
func (s *testSite) cutOff(age time.Duration) {
	s.group.Cut(s.name)
	for { // a renewal under way may still end
		was := s.contact.confirmed.Load()
		if s.contact.confirmed.CompareAndSwap(was, executor.Boottime()-int64(age)) {
			return
		}
	}
}

// TestFreshnessFollowsContact: a broker with contact is fresh, one without gets
// older and says so, and one that never had contact has no age.
func TestFreshnessFollowsContact(t *testing.T) {
	if f := (node.Freshness{Lease: time.Second}); !f.Stale() || !strings.Contains(f.Words(), "no contact with the leader since it started") {
		t.Errorf("never in contact: %q", f.Words())
	}
	sites := startSites(t, 1, 1)
	s := sites[1]
	if age, known := s.Freshness().Age(); !known || s.Freshness().Stale() || s.Freshness().Words() != "" {
		t.Errorf("in contact: %s %t", age, known)
	}
	if err := s.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.cutOff(42 * time.Hour)
	if f := s.Freshness(); !f.Stale() || !strings.HasPrefix(f.Words(), "as of 42h") || !strings.Contains(f.Words(), " ago: this broker has no contact") {
		t.Errorf("cut off: %q", f.Words())
	}
	if err := s.Confirm(t.Context()); !errors.Is(err, node.ErrNoQuorum) {
		t.Errorf("a current read without contact: %v", err)
	}
	s.group.Heal(s.name)
	if err := s.Confirm(t.Context()); err != nil || s.Freshness().Stale() {
		t.Errorf("healed: %v, %q", err, s.Freshness().Words())
	}
}

// TestConfirmOnlyMovesForward: an answer that comes late makes nothing older.
func TestConfirmOnlyMovesForward(t *testing.T) {
	var c contact
	c.confirm(7)
	c.confirm(5)
	if got := c.confirmed.Load(); got != 7 {
		t.Errorf("confirmed at %d", got)
	}
}

// TestWhyOfACutOffBroker tells of then and estimates nothing.
func TestWhyOfACutOffBroker(t *testing.T) {
	sites := startSites(t, 1, 1)
	s := sites[1]
	spec, err := jobspec.ParseSpec([]byte(`{"command":["true"],"resources":{"cpu":1},"count":9,"sites":{"only":["site-1"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := s.Submit(t.Context(), []node.Request{{Spec: spec}})[0]
	if a.Err != nil || a.Durability != node.DurableFederation {
		t.Fatalf("%+v", a)
	}
	w, err := s.Why(t.Context(), a.ID)
	if err != nil || strings.Contains(w.Summary, "ago") {
		t.Fatalf("%v: %s", err, w.Summary)
	}
	s.cutOff(42 * time.Hour)
	w, err = s.Why(t.Context(), a.ID)
	if err != nil || !strings.HasPrefix(w.Summary, "as of 42h") ||
		!strings.Contains(w.Summary, " ago: this broker has no contact with the leader; then: ") || w.Estimate.Unknown == "" || w.Estimate.P90 > 0 {
		t.Errorf("%v: %s; estimate %+v", err, w.Summary, w.Estimate)
	}
	if strings.Contains(w.Summary, "within") || strings.Contains(w.Summary, "at once") {
		t.Errorf("of then as of now: %s", w.Summary)
	}
}

// TestDryRunOfACutOffBroker: a job that may not run here does not wait for room here.
func TestDryRunOfACutOffBroker(t *testing.T) {
	sites := startSites(t, 1, 1)
	s := sites[1]
	s.group.Cut(s.name)
	s.until(t.Context(), (*core.Core).Alone) // its lease runs out
	for job, want := range map[string]string{
		`{"command":["true"],"count":9}`:                   core.AloneReason,
		`{"command":["true"],"sites":{"only":["site-1"]}}`: publish.Unpublished,
		`{"command":["true"],"resources":{"cpu":7}}`:       publish.Unpublished,
	} {
		spec, err := jobspec.ParseSpec([]byte(job))
		if err != nil {
			t.Fatal(err)
		}
		if w, err := s.DryRun(t.Context(), node.Request{Spec: spec}); err != nil || w.Summary != want {
			t.Errorf("%s: %v: %s", job, err, w.Summary)
		}
	}
}
