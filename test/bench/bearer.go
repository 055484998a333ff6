package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

	lanes []*lane
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

// begin connects the clients, which stay connected, and has them submit what is not counted: a provider's tokens are
// verified at first, and remembered, and a broker that has just started grows.
func (b *bearer) begin(ctx context.Context, l userLoad, calls int) (err error) {
	b.lanes, err = dialLanesAs(ctx, b.fed, l.clients, l.contentType, l.body(b.fed), b.authorize)
	if err != nil {
		return err
	}
	for _, lane := range b.lanes {
		lane.held = b.held
		if _, err = lane.postJobs(l.jobs); err != nil {
			return err
		}
	}
	for range warmRounds {
		if _, err = b.count(ctx, l, calls); err != nil {
			return err
		}
	}
	return nil
}

// warmRounds are submitted before anything is counted: until a broker's heap was collected once, it asks the
// machine for each page that it writes to.
const warmRounds = 3

func (b *bearer) count(ctx context.Context, l userLoad, calls int) (rate float64, err error) {
	return countTo(ctx, l.clients, calls, func(c int) (int, error) { return b.lanes[c].postJobs(l.jobs) })
}

// submit adds a round.
func (b *bearer) submit(ctx context.Context, l userLoad, calls int) error {
	was, err := brokerTimeOf(b.fed)
	if err != nil {
		return err
	}
	rate, err := b.count(ctx, l, calls)
	if err != nil {
		return err
	}
	used, err := brokerTimeOf(b.fed)
	if err != nil {
		return err
	}
	b.rates = append(b.rates, rate)
	b.costs = append(b.costs, (used-was).Seconds()*1000/float64(calls*l.jobs))
	return nil
}

// continues adds the rounds of an earlier spell, also to what stands beside it alone.
func (b *bearer) continues(was *bearer) {
	b.rates, b.costs = append(was.rates, b.rates...), append(was.costs, b.costs...)
	if o := b.beside; o != nil && o.fed != b.fed {
		o.continues(was.beside)
	}
}

// row shows what is kept beside another one.
func (b *bearer) row(l userLoad) []string {
	row := []string{l.name, b.name, milliseconds(b.costs), "-", "-", "-", "-"}
	if o := b.beside; o != nil {
		row[3], row[4] = o.name, milliseconds(o.costs)
		row[5] = kept(ratios(b.rates, o.rates))
		row[6] = kept(ratios(o.costs, b.costs))
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

// kept shows the geometric mean of ratios, with its standard error.
func kept(ratios []float64) string {
	n := float64(len(ratios))
	var mean, squares float64
	for _, r := range ratios {
		mean += math.Log(r) / n
	}
	for _, r := range ratios {
		squares += (math.Log(r) - mean) * (math.Log(r) - mean)
	}
	mean = math.Exp(mean)
	return fmt.Sprintf("%.3f ± %.3f", mean, mean*math.Sqrt(squares/max(n-1, 1)/n))
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}
