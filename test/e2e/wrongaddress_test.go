package e2e

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// siteList is what /v1/sites tells, as far as addresses go.
type siteList struct {
	Items []struct {
		ID        string
		Addresses struct{ Peer string }
		Contact   *struct {
			Reached      bool
			Address, Why string
		}
	}
}

// memberStatus is what /v1/status tells, as far as members and addresses go.
type memberStatus struct {
	Voters, Members []string
	Unreached       []struct{ By, Address, Why string }
}

// getJSON reads a broker's answer.
func getJSON(b *solo.Broker, path string, into any) error {
	data, _, err := b.Do(b.Context(), http.MethodGet, path, nil, nil)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	return err
}

// reaches says whether a broker reaches another site's API, as /v1/sites tells.
func reaches(b *solo.Broker, site string, want bool) {
	b.Helper()
	b.Await(fmt.Sprintf("reaches %s: %v", site, want), func() error {
		var l siteList
		if err := getJSON(b, "/v1/sites", &l); err != nil {
			return err
		}
		for _, s := range l.Items {
			if s.ID == site && s.Contact != nil && s.Contact.Reached == want {
				return nil
			}
		}
		return fmt.Errorf("%+v", l.Items)
	})
}

// TestWrongAdvertiseIsTold: a site tells an address where nobody is. It is ready, since
// it reaches the others; that they do not reach its API and its gossip is in its log and
// theirs, in status and sites, and in the answers to questions about its jobs.
func TestWrongAdvertiseIsTold(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	one, three := all[0], all[2]
	id := submit(t, three.Site, testbed.Spec{Command: []string{"true"}}).ID
	awaitEnd(t, three.Site, id)
	three.End(syscall.SIGTERM)
	three.Launch("--advertise", "127.99.99.99")
	const remedy = "correct `advertise` or `peer` of site-3 and restart it"
	logged(one, "WRN", "a site's API is not reached", "127.99.99.99:", remedy)
	logged(three, "WRN", "does not reach this broker's API", "127.99.99.99:", remedy)
	logged(three, "WRN", "gossip: others hear nobody", "127.99.99.99:", "correct `advertise` or `gossip` here")
	reaches(one, "site-3", false)
	reaches(one, "site-2", true)
	var st memberStatus
	one.Must(getJSON(three, "/v1/status?hash=false", &st))
	if len(st.Unreached) == 0 || !strings.Contains(st.Unreached[0].Why, remedy) {
		t.Errorf("status of site-3: %+v", st.Unreached)
	}
	for _, path := range []string{"/tasks", "/why", ""} {
		_, _, err := one.Do(t.Context(), http.MethodGet, "/v1/jobs/"+id+path, nil, nil)
		var he *testbed.HTTPError
		if errors.As(err, &he) && he.Status == http.StatusServiceUnavailable &&
			strings.Contains(he.Body, "its broker at 127.99.99.99:") &&
			strings.Contains(he.Body, remedy) {
			continue
		}
		t.Errorf("site-1 says of %s%s: %v", id, path, err)
	}
	three.End(syscall.SIGTERM)
	three.Start()
	reaches(one, "site-3", true)
}

// TestFounderWaitsForItsName: nothing is founded under a name that nobody knows, and
// the data are as they were: a start with the right name founds.
func TestFounderWaitsForItsName(t *testing.T) {
	t.Parallel()
	b := solo.Prepare(t, "site-1", append(backend(t), "--cores", "1", "--bootstrap", "--gossip", solo.FreeAddress(t))...)
	b.Launch("--advertise", "brokr.invalid")
	logged(b, "WRN", "nothing is founded yet", "brokr.invalid", "correct `advertise`")
	b.Await("says why it waits", func() error {
		err := b.Ready(t.Context())
		if err == nil || !strings.Contains(err.Error(), "brokr.invalid") {
			return fmt.Errorf("/readyz: %w", err)
		}
		return nil
	})
	b.End(syscall.SIGTERM)
	unclaimed(t, b.Dir)
	b.Launch("--advertise", "localhost")
	ready(b)
}

// unclaimed checks that no data of a member are in a folder, on either backend.
func unclaimed(t *testing.T, dir string) {
	t.Helper()
	for _, backend := range []string{"raft", "zk"} {
		if _, err := os.Stat(filepath.Join(dir, backend, "member.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the data are claimed: %v", err)
		}
	}
}

// TestNameThatIsNotFound: a voter that is restarted with such a name runs, says what is
// wrong, and is seen again once that is corrected.
func TestNameThatIsNotFound(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 1)
	one := all[0]
	one.End(syscall.SIGTERM)
	one.Launch("--advertise", "brokr.invalid")
	logged(one, "WRN", "gossip: this site's own address is not found", "brokr.invalid:", "correct `advertise`")
	if !onZK() { // there nobody dials it before it leads: see TestOnZooKeeperUnreachedLeader
		logged(one, "WRN", "the group does not take this member's address", "brokr.invalid:", "correct its `advertise`")
	}
	ready(one)
	one.End(syscall.SIGTERM)
	one.Start()
	awaitEnd(t, one.Site, submit(t, one.Site, testbed.Spec{Command: []string{"true"}}).ID)
}

// TestJoinAtAnotherPort: an invitation that names another port of a broker, as one does whose operator has made a
// mistake, admits nobody; the log says which port it is, and what to write.
func TestJoinAtAnotherPort(t *testing.T) {
	t.Parallel()
	all, gossip := voters(t, 1)
	for name, addr := range map[string]string{"the gossip port": gossip[0], "the API's port (http)": all[0].URL.Host} {
		b := solo.Prepare(t, "lost", "--cores", "1", "--gossip", solo.FreeAddress(t), "--join", "-")
		b.Input = redirected(t, all[0], "lost", addr)
		b.Launch()
		logged(b, "WRN", "not admitted yet", "no peer port, but "+name+" of site site-1: give that broker's peer address")
		b.End(syscall.SIGTERM)
		unclaimed(t, b.Dir)
		must(t, revoke(t, all[0], "lost"))
	}
	peer, dir := freeAddress(t), filepath.Join(t.TempDir(), "new")
	code, out := broker(
		t,
		"--site",
		"lost",
		"--data-dir",
		dir,
		"--http",
		freeAddress(t),
		"--peer",
		peer,
		"--gossip",
		peer,
		"--bootstrap",
	)
	if code != 2 || strings.Count(out, "\n") != 1 ||
		!strings.Contains(out, "peer "+peer+" and gossip "+peer+" are one address: give each a port of its own") {
		t.Errorf("gossip on the peer port: exit %d\n%s", code, out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// redirected is an invitation of a site that names other addresses than its inviter's.
func redirected(t *testing.T, by *solo.Broker, site string, addrs ...string) string {
	t.Helper()
	text, err := by.Invite(within(t), site)
	must(t, err)
	v, err := invitation.Parse(text)
	must(t, err)
	v.Addresses = addrs
	text, err = v.Text()
	must(t, err)
	return text
}

// revoke takes an invitation back.
func revoke(t *testing.T, at *solo.Broker, site string) error {
	t.Helper()
	_, _, err := at.Do(within(t), http.MethodDelete, "/v1/invitations/"+site, nil, nil)
	return err
}

// TestJoinPastASilentPort: the first address takes connections and stays silent; the
// member at the second is asked soon. A name of two addresses is a case of raftlog's
// TestJoinAtTwoAddresses: machines differ in what localhost means.
func TestJoinPastASilentPort(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 1)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	b := solo.Prepare(t, "site-2", "--cores", "1", "--gossip", solo.FreeAddress(t), "--join", "-")
	b.Input = redirected(t, all[0], "site-2", silent.Addr().String(), all[0].Peer)
	b.Start()
}

// TestTwoFramesOfAStranger: a stranger asks nothing at a peer port. A member, which may ask, asks for a site that
// nobody
// has admitted at one voter's address, and for another voter at a third one's. The group keeps its members, its
// leader, and takes jobs; so do all after a restart.
func TestTwoFramesOfAStranger(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	stranger, member := strangersNetwork(t, all[2].Dir), networkOf(t, all[2].Dir)
	for _, b := range all[:2] {
		to := relay.Peer{Addr: b.Peer}
		if err := refusedAs(t, stranger, "stranger", to, relay.KindJoin, [16]byte{}); !errors.Is(err, relay.ErrUnknownKey) {
			t.Errorf("%s answers a stranger: %v", b.Name, err)
		}
		if err := refusedAs(t, member, "stranger", to, relay.KindJoin, [16]byte{}); !errors.Is(err, relay.ErrOtherName) {
			t.Errorf("%s answers a member in another name: %v", b.Name, err)
		}
		for _, q := range []map[string]any{
			{"site": "stranger", "node": strings.Repeat("7", 32), "instance": "x", "addr": all[1].Peer, "hops": 1},
			{"site": "site-2", "node": strings.Repeat("7", 32), "instance": "x", "addr": all[2].Peer, "hops": 1},
		} {
			if a := joinFrame(t, member, "site-3", b, q); a["code"] == "ok" {
				t.Errorf("%s admits %v: %v", b.Name, q, a)
			}
		}
	}
	restart(t, all, func(int) []string { return nil })
	var st memberStatus
	err := getJSON(all[0], "/v1/status?hash=false", &st)
	if err != nil || len(st.Voters) != 3 || len(st.Members) != 3 {
		t.Errorf("voters %v, members %v, %v", st.Voters, st.Members, err)
	}
}

// joinFrame asks a broker's peer port one question of a join, as a member, and returns the answer.
func joinFrame(t *testing.T, from *relay.Network, as string, b *solo.Broker, q map[string]any) (a map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := (&relay.Dialer{Net: from, Site: as}).Dial(ctx, relay.Peer{Addr: b.Peer}, relay.KindJoin, [16]byte{})
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(limit)))
	body, err := json.Marshal(q)
	must(t, err)
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	must(t, err)
	answer, err := relay.ReadFrame(conn, nil, 64<<10)
	must(t, err)
	must(t, json.Unmarshal(answer, &a))
	return a
}

// TestVotersSwapAddresses: two voters are restarted with each other's peer address.
func TestVotersSwapAddresses(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	swapped := []string{all[0].Peer, all[2].Peer, all[1].Peer}
	restart(t, all, func(i int) []string { return []string{"--peer", swapped[i]} })
	for i, b := range all {
		b.Await("its address is told", func() error {
			var l siteList
			err := getJSON(all[(i+1)%3], "/v1/sites", &l)
			if err == nil && (len(l.Items) != 3 || l.Items[i].Addresses.Peer != swapped[i]) {
				err = fmt.Errorf("%+v", l.Items)
			}
			return err
		})
	}
}
