package replay_test

import (
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/history/replay"
)

// verify goes through what is kept, or a file.
func (f *federation) verify(path string, o replay.Options) *replay.Report {
	f.t.Helper()
	r, err := replay.Verify(f.t.Context(), f.source(path), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// What a broker has kept since its federation was founded leads to the state that it has, and all sites have signed it.
func TestVerifyFromTheFounding(t *testing.T) {
	f := newFederation(t, 64<<20)
	for range 20 {
		f.job("site-2")
		f.job("site-3")
	}
	f.idle(60)
	f.close()
	r := f.verify(f.dir, replay.Options{})
	index, hash := f.replica.Hash()
	if r.Difference != nil || r.End.Entry != index || r.End.State != hexOf(hash[:]) || r.Begin.Entry != 0 {
		t.Fatalf("%v; from %d to %d %s, want %d", r.Difference, r.Begin.Entry, r.End.Entry, r.End.State, index)
	}
	if r.Entries != index || r.Decisions != 40 || r.Unsigned != 0 || r.Statements < 6 ||
		strings.Join(r.Signed.SignedBy, " ") != "site-1 site-2 site-3" {
		t.Errorf("%+v", r)
	}
	if len(r.Ledger) != 3 || r.Ledger[1].Begin.Utility != "0" || r.Ledger[1].End.Utility == "0" || len(r.Members) != 3 {
		t.Errorf("ledger %+v, members %+v", r.Ledger, r.Members)
	}
}
