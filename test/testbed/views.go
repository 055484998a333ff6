package testbed

import (
	"context"
	"errors"
	"fmt"
	"math/big"
)

// Status of a broker.
type Status struct {
	Site, Leader string
	LeaderWhy    string `json:"leader_why"`
	Term         uint64
	Index        uint64
	StateHash    StateHash `json:"state_hash"`
	Federation   string
	Voters       []string
}

// StateHash is the hash of the replicated state after one entry.
type StateHash struct {
	Index uint64
	Hash  string
}

// Ledger is who used and gave how much.
type Ledger struct {
	Index  uint64
	Unit   string
	Sites  []Account
	Matrix []Cell
}

// Cell is what an owner's ended runs used of an executor's machines: how many,
// and the sum of their weights (decimal).
type Cell struct {
	Owner, Executor string
	Tasks           uint64
	A               string
}

// Account is one site's standing, decimal.
type Account struct{ Site, Contribution, Utility, Priority string }

// SiteInfo is one site as the federation sees it.
type SiteInfo struct {
	ID, State   string
	Incarnation uint64
	Voter       bool
}

// Status returns the broker's own view.
func (s *Site) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, s, "/v1/status")
}

// Ledger returns the broker's view of the accounts.
func (s *Site) Ledger(ctx context.Context) (Ledger, error) {
	return get[Ledger](ctx, s, "/v1/ledger")
}

// Infos returns what this broker knows of all sites.
func (s *Site) Infos(ctx context.Context) ([]SiteInfo, error) {
	l, err := get[list[SiteInfo]](ctx, s, "/v1/sites")
	return l.Items, err
}

// Info returns what this broker knows of a site.
func (s *Site) Info(ctx context.Context, site string) (SiteInfo, error) {
	all, err := s.Infos(ctx)
	if err != nil {
		return SiteInfo{}, err
	}
	for _, i := range all {
		if i.ID == site {
			return i, nil
		}
	}
	return SiteInfo{}, fmt.Errorf("%s knows no site %s", s.Name, site)
}

// Check returns nil if the ledger's priorities sum to zero.
func (l Ledger) Check() error {
	var sum big.Int
	for _, a := range l.Sites {
		p, ok := new(big.Int).SetString(a.Priority, 10)
		if !ok {
			return fmt.Errorf("priority of %s is %q", a.Site, a.Priority)
		}
		sum.Add(&sum, p)
	}
	if sum.Sign() != 0 {
		return fmt.Errorf("priorities sum to %s at entry %d: %+v", &sum, l.Index, l.Sites)
	}
	return nil
}

// errBehind: the brokers were not asked at the same entry; ask again.
var errBehind = errors.New("brokers are at different entries")

// AwaitEqualState waits until all sites show the state of the same entry, and
// fails at once if its hashes differ.
func AwaitEqualState(ctx context.Context, sites ...*Site) error {
	return Await(ctx, "equal state", func() error {
		var first StateHash
		for i, s := range sites {
			st, err := s.Status(ctx)
			switch {
			case err != nil:
				return err
			case i == 0:
				first = st.StateHash
			case st.StateHash.Index != first.Index:
				return fmt.Errorf("%w: %d at %s, %d at %s", errBehind,
					first.Index, sites[0].Name, st.StateHash.Index, s.Name)
			case st.StateHash.Hash != first.Hash:
				return Final(fmt.Errorf("entry %d has hash %s at %s, but %s at %s", first.Index,
					first.Hash, sites[0].Name, st.StateHash.Hash, s.Name))
			}
		}
		return nil
	})
}
