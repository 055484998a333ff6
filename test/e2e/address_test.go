package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// voters is a federation of brokers with command lines of their own, each a voter.
// gossip are their gossip addresses.
func voters(t *testing.T, n int) (all []*solo.Broker, gossip []string) {
	t.Helper()
	return votersOn(t, n, backend(t))
}

// votersOn is voters with the flags of a backend.
func votersOn(t *testing.T, n int, backend []string) (all []*solo.Broker, gossip []string) {
	t.Helper()
	for i := range n {
		way := []string{"--bootstrap"}
		if i > 0 {
			way = all[0].Invites(fmt.Sprintf("site-%d", i+1), all[1:]...)
		}
		gossip = append(gossip, solo.FreeAddress(t))
		all = append(all, solo.New(t, fmt.Sprintf("site-%d", i+1), slices.Concat(way, backend, []string{"--cores", "1", "--gossip", gossip[i]})...))
	}
	awaitVoters(t, all[0].Site, n)
	return all, gossip
}

// logged waits until a broker's log says all of it in one line.
func logged(b *solo.Broker, texts ...string) {
	b.Helper()
	b.Await("a log line with the remedy", func() error {
		for line := range strings.Lines(b.LogTail(400)) {
			missing := false
			for _, text := range texts {
				missing = missing || !strings.Contains(line, text)
			}
			if !missing {
				return nil
			}
		}
		return fmt.Errorf("no line with %q", texts)
	})
}

func ready(b *solo.Broker) {
	b.Helper()
	b.Await("ready", func() error { return b.Ready(b.Context()) })
}

// TestPhantomQuorum: a voter restarts with another spelling of another voter's
// address, and three of five are killed. The two that are left acknowledge nothing
// as the federation's, and when the three return all go on.
func TestPhantomQuorum(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 5)
	five := all[4]
	five.End(syscall.SIGTERM)
	_, port, _ := net.SplitHostPort(all[1].Peer)
	five.Launch("--peer", "127.0.0.2:"+port, "--advertise", "localhost", "--gossip", solo.FreeAddress(t))
	logged(five, "WRN", "localhost:"+port, `is site \"site-2\": correct`, "`advertise`")
	for _, b := range all[2:] {
		b.End(syscall.SIGKILL)
	}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		a, err := all[i%2].Submit(ctx, testbed.Spec{Command: []string{"true"}})
		cancel()
		if err == nil && a.Durability == "federation" {
			t.Fatalf("two of five voters acknowledge job %s", a.ID)
		}
	}
	for _, b := range all[2:] {
		b.Launch()
	}
	for _, b := range all {
		ready(b)
	}
	awaitEnd(t, five.Site, submit(t, five.Site, testbed.Spec{Command: []string{"true"}}).ID)
}

// TestAdvertiseTypo: a voter is restarted with an address where nobody is, and with
// the right one, twice. It is told what is wrong, and is back each time.
func TestAdvertiseTypo(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	three := all[2]
	for range 2 {
		three.End(syscall.SIGTERM)
		three.Launch("--advertise", "127.99.99.99")
		logged(three, "WRN", "hears nobody at address 127.99.99.99:", "correct its `advertise`")
		three.End(syscall.SIGTERM)
		three.Start()
	}
	for _, b := range all {
		ready(b)
	}
}

// TestJoinTypo: a site that joins with a name that nobody knows lives, says why it
// is not ready and whom it asks, and joins once that is corrected.
func TestJoinTypo(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 1)
	four := solo.Prepare(t, "site-4", append(all[0].Invites("site-4"), "--cores", "1", "--gossip", solo.FreeAddress(t))...)
	four.Launch("--advertise", "127.99.99.99")
	four.Await("says why it waits", func() error {
		err := four.Ready(t.Context())
		var he *testbed.HTTPError
		if !errors.As(err, &he) || he.Status != http.StatusServiceUnavailable {
			return fmt.Errorf("/readyz: %w", err)
		}
		for _, text := range []string{"waits to be admitted", all[0].Peer, "hears nobody at address 127.99.99.99:", "correct its `advertise`"} {
			if !strings.Contains(he.Body, text) {
				return fmt.Errorf("/readyz does not say %q: %s", text, he.Body)
			}
		}
		_, _, err = four.Do(t.Context(), http.MethodGet, "/livez", nil, nil)
		return err
	})
	logged(four, "WRN", "not joined yet", all[0].Peer, "127.99.99.99")
	four.End(syscall.SIGTERM)
	four.Start()
}

// TestAllAddressesChange: all voters are restarted with other peer addresses, and
// then with other gossip addresses, too. They find each other by what gossip tells,
// in the end through the addresses that their configuration names.
func TestAllAddressesChange(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	var peers, gossip []string
	for range all {
		peers, gossip = append(peers, solo.FreeAddress(t)), append(gossip, solo.FreeAddress(t))
	}
	restart(t, all, func(i int) []string { return []string{"--peer", peers[i]} })
	for i := range peers {
		peers[i] = solo.FreeAddress(t)
	}
	restart(t, all, func(i int) []string {
		return []string{"--peer", peers[i], "--gossip", gossip[i], "--gossip-join", strings.Join(gossip, ",")}
	})
	for i, b := range all {
		b.Await("its address is told", func() error {
			data, _, err := all[(i+1)%3].Do(t.Context(), http.MethodGet, "/v1/sites", nil, nil)
			if err == nil && !strings.Contains(string(data), `"`+peers[i]+`"`) {
				err = fmt.Errorf("%s is not in %s", peers[i], data)
			}
			return err
		})
	}
}

// restart ends all brokers, and starts them with more arguments.
func restart(t *testing.T, all []*solo.Broker, more func(i int) []string) {
	t.Helper()
	for _, b := range all {
		b.End(syscall.SIGTERM)
	}
	for i, b := range all {
		b.Launch(more(i)...)
	}
	for _, b := range all {
		ready(b)
	}
	awaitEnd(t, all[1].Site, submit(t, all[1].Site, testbed.Spec{Command: []string{"true"}}).ID)
}
