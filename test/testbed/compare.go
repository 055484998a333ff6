package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// compareFor is how long CompareStates looks for an entry at which all answer.
const compareFor = 3 * time.Second

// CompareStates asks the living sites for the hashes of their states until all have
// shown that of one entry, or for a while, and returns an error if two of any entry
// differ. It also reads what the brokers' own comparisons have found. Sites that do
// not answer are no difference.
func CompareStates(ctx context.Context, sites ...*Site) error {
	ctx, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	seen := map[uint64]map[string]string{} // hashes by entry and site
	var living []*Site
	for _, s := range sites {
		if s.Alive() && s.Ready(ctx) == nil {
			living = append(living, s)
		}
	}
	_ = Await(ctx, "the same entry everywhere", func() error { // a site may be behind, or stuck
		for _, s := range living {
			st, err := s.Status(ctx)
			if err != nil {
				return err
			}
			at := seen[st.StateHash.Index]
			if at == nil {
				at = map[string]string{}
				seen[st.StateHash.Index] = at
			}
			if at[s.Name] = st.StateHash.Hash; len(at) == len(living) {
				return nil
			}
		}
		return errBehind
	})
	var errs []error
	for entry, hashes := range seen {
		first := ""
		for site, hash := range hashes {
			if first == "" {
				first = site
			}
			if hash != hashes[first] {
				errs = append(errs, fmt.Errorf("entry %d has hash %s at %s, but %s at %s", entry, hashes[first], first, hash, site))
			}
		}
	}
	for _, s := range sites {
		errs = append(errs, s.ReportedDifference())
	}
	return errors.Join(errs...)
}

// ReportedDifference returns what a broker has found by its own comparisons: that
// another one's state differs, or its own.
func (s *Site) ReportedDifference() error {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "broker.log")) // none: it was never started
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "has another state than this one") || strings.Contains(line, "state differs from") ||
			strings.Contains(line, "has another history than this one") {
			return fmt.Errorf("%s: %s", s.Name, strings.TrimSpace(line))
		}
	}
	return nil
}
