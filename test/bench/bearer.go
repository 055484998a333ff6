package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// bearer is who submits: clients with tokens of one kind.
type bearer struct {
	name string
	fed  *testbed.Federation
	// authorize adds the token of a client to its header.
	authorize func(client int, h http.Header)
	// held says that what is acknowledged need not be committed: the site holds it until it is the user's turn.
	held bool
	// beside is what its rounds are compared with, nil if nothing is.
	beside *bearer

	rates []float64 // jobs a second, of each round
	costs []float64 // ms of the brokers' processors a job, of each round
}

// bySite has clients bring the token of their broker's operator, and none to a build that has no tokens.
func bySite(fed *testbed.Federation) func(int, http.Header) {
	return func(c int, h http.Header) { fed.Sites[c%len(fed.Sites)].Authorize(h) }
}

// byUsers makes a token for each of n clients at its broker. Each is a user of its own, since requests are bounded by
// user (rates.user).
func byUsers(ctx context.Context, fed *testbed.Federation, n int) (func(int, http.Header), error) {
	tokens := make([]string, n)
	for c := range tokens {
		var made struct{ Token string }
		asked := mustJSON(map[string]string{"name": "bench", "user": userOf(c), "role": "user"})
		answer, _, err := fed.Sites[c%len(fed.Sites)].Do(ctx, http.MethodPost, "/v1/tokens", http.Header{"Content-Type": {"application/json"}}, asked)
		if err == nil {
			err = json.Unmarshal(answer, &made)
		}
		if err == nil && made.Token == "" {
			err = errors.New("the answer has none")
		}
		if err != nil {
			return nil, fmt.Errorf("make the token of %s: %w", userOf(c), err)
		}
		tokens[c] = made.Token
	}
	return byTokens(tokens), nil
}

func userOf(client int) string { return fmt.Sprintf("user-%d", client) }

func byTokens(tokens []string) func(int, http.Header) {
	return func(c int, h http.Header) { h.Set("Authorization", "Bearer "+tokens[c]) }
}

// submit adds a round.
func (b *bearer) submit(ctx context.Context, l userLoad, calls int) error {
	lanes, err := dialLanesAs(ctx, b.fed, l.clients, l.contentType, l.body(b.fed), b.authorize)
	if err != nil {
		return err
	}
	defer closeLanes(lanes)
	for _, lane := range lanes {
		lane.held = b.held
	}
	if len(b.rates) == 0 { // a provider's tokens are verified at first, and remembered
		for _, lane := range lanes {
			if _, err = lane.postJobs(l.jobs); err != nil {
				return err
			}
		}
	}
	was, err := processorTimeOf(b.fed)
	if err != nil {
		return err
	}
	rate, err := countTo(ctx, l.clients, calls, func(c int) (int, error) { return lanes[c].postJobs(l.jobs) })
	if err != nil {
		return err
	}
	used, err := processorTimeOf(b.fed)
	if err != nil {
		return err
	}
	b.rates = append(b.rates, rate)
	b.costs = append(b.costs, used.since(was).brokers.Seconds()*1000/float64(calls*l.jobs))
	return nil
}

// row shows what is kept beside another one.
func (b *bearer) row(l userLoad) []string {
	row := []string{l.name, b.name, milliseconds(b.costs), "-", "-", "-", "-"}
	if o := b.beside; o != nil {
		row[3], row[4] = o.name, milliseconds(o.costs)
		row[5] = spread(ratios(b.rates, o.rates))
		row[6] = spread(ratios(o.costs, b.costs))
	}
	return row
}

func milliseconds(costs []float64) string { return fmt.Sprintf("%.3f", median(costs)) }

// ratios of two sets, round by round.
func ratios(of, by []float64) []float64 {
	out := make([]float64, len(of))
	for i := range of {
		out[i] = of[i] / by[i]
	}
	return out
}

// spread shows the median, the least and the most.
func spread(v []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(v), slices.Min(v), slices.Max(v))
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}
