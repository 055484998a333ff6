//go:build zookeeper

package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// TestOnZooKeeperUnreachedLeader: a member with an address at which nobody reaches it
// leads first: an address where nobody is, a name that nobody knows, another site's, and
// one of another federation. It hands over with a line that names address and keys, all
// take jobs, none is lost, and it is told from then on; corrected, it may lead again.
func TestOnZooKeeperUnreachedLeader(t *testing.T) {
	t.Parallel()
	all, _ := votersOn(t, 3, zooKeeper(t))
	other := solo.New(t, "elsewhere", "--bootstrap", "--cores", "1")
	three := all[2]
	before := submit(t, three.Site, testbed.Spec{Command: []string{"true"}})
	awaitEnd(t, three.Site, before.ID)
	for name, wrong := range map[string][]string{
		"unreachable": {"--advertise", "127.99.99.99"}, "not found": {"--advertise", "brokr.invalid"},
		"another site's":       {"--advertise", "localhost", "--peer", twin(all[1].Peer)},
		"another federation's": {"--advertise", "localhost", "--peer", twin(other.Peer)},
		"IPv6, nobody there":   {"--advertise", "::1"},
	} {
		t.Logf("address: %s", name)
		at := len(three.LogTail(100000))
		for _, b := range all {
			b.End(syscall.SIGTERM)
		}
		three.Launch(wrong...)
		three.Await("leads", func() error { return leads(three, "site-3", true) })
		all[0].Launch()
		all[1].Launch()
		host, port := wrong[1], portOf(three.Peer)
		if len(wrong) > 2 {
			port = portOf(wrong[3])
		}
		since := func(texts ...string) {
			t.Helper()
			three.Await("a log line with the remedy", func() error { return says(three.LogTail(100000)[at:], texts...) })
		}
		since("WRN", "this leader is not fit: handing over", "no other member reaches its peer address "+net.JoinHostPort(host, port), "correct its `advertise` or `peer`")
		for _, b := range all {
			ready(b)
		}
		all[0].Await("another leader", func() error { return leads(all[0], "site-3", false) })
		for _, b := range all {
			awaitEnd(t, b.Site, submit(t, b.Site, testbed.Spec{Command: []string{"true"}}).ID)
		}
	}
	for _, b := range all[:2] {
		logged(b, "WRN", "the leader is not reached", `peer=127.99.99.99:`, "leader=site-3", "correct its `advertise` or `peer`")
	}
	logged(all[0], "another key answers there: that of site-2, not of site-3: correct `advertise` or `peer` of site-3")
	restart(t, all, func(int) []string { return nil })
	if job, err := three.Job(within(t), before.ID); err != nil || job.State != "succeeded" {
		t.Errorf("the first job is %+v, %v", job, err)
	}
	for _, b := range all[:2] {
		b.End(syscall.SIGTERM)
	}
	three.Await("leads again", func() error { return leads(three, "site-3", true) })
	awaitEnd(t, three.Site, submit(t, three.Site, testbed.Spec{Command: []string{"true"}}).ID)
}

// TestOnZooKeeperUnreachedFollower: one that does not lead says that nobody reaches it,
// does not lead when the leader dies, and is heard again once it is corrected.
func TestOnZooKeeperUnreachedFollower(t *testing.T) {
	t.Parallel()
	all, _ := votersOn(t, 3, zooKeeper(t))
	three := all[2]
	three.End(syscall.SIGTERM)
	three.Launch("--advertise", "127.99.99.99")
	logged(three, "WRN", "this member should not lead", "127.99.99.99:"+portOf(three.Peer), "correct its `advertise` or `peer`")
	for range 2 { // whichever of the others leads
		st, err := three.Status(within(t))
		must(t, err)
		if st.Leader == "site-3" {
			t.Fatal("it leads")
		}
		leader := all[int(st.Leader[len("site-")]-'1')]
		leader.End(syscall.SIGKILL)
		three.Await("another leader", func() error {
			st, err := three.Status(t.Context())
			if err == nil && (st.Leader == "" || st.Leader == leader.Name) {
				err = fmt.Errorf("%q leads", st.Leader)
			}
			return err
		})
		leader.Start()
	}
	three.End(syscall.SIGTERM)
	three.Start()
	awaitEnd(t, three.Site, submit(t, three.Site, testbed.Spec{Command: []string{"true"}}).ID)
}

// TestOnZooKeeperWrongServers: an address in zk at which no server of the ensemble
// answers is told in one line with the remedy, whatever is there, and nothing is claimed;
// beside a right one it is passed over.
func TestOnZooKeeperWrongServers(t *testing.T) {
	t.Parallel()
	all, gossip := votersOn(t, 1, zooKeeper(t))
	one := all[0]
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	nobody, nobody6 := freeAddress(t), "[::1]:"+portOf(freeAddress(t))
	right := shared.servers.Addrs()
	t.Run("refused", func(t *testing.T) {
		for zk, c := range map[string]struct {
			code int
			says string
		}{
			nobody:                 {1, "connection refused"},
			nobody6:                {1, "connection refused"},
			"zk.invalid:2181":      {1, "look up zk.invalid"},
			silent.Addr().String(): {1, "it takes connections and says nothing"},
			one.URL.Host:           {1, "check the port"},
			one.Peer:               {1, "check the port"},
			gossip[0]:              {1, "check the port"},
			"127.0.0.1:0":          {2, "write a number of 1 to 65535"},
			"::1:2181":             {2, "write [ADDRESS]:PORT"},
			"[::1]":                {2, "write [ADDRESS]:PORT"},
			"[fe80::1%lo]:2181":    {2, "has a zone"},
			"0.0.0.0:2181":         {2, "write HOST:PORT of one"},
			"http://zk:2181":       {2, "write HOST:PORT"},
			right + "," + right:    {2, "given twice"},
			"zk:2181,ZK.:2181":     {2, "given twice"},
			"127.0.0.1:1,[::1]:1":  {1, "check the addresses"},
		} {
			t.Run(zk, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "data")
				code, out := broker(t, append(onServers(zk+"/none"), "--site", "lost", "--data-dir", dir, "--bootstrap",
					"--http", freeAddress(t), "--peer", freeAddress(t), "--gossip", freeAddress(t))...)
				last := lastLine(out)
				if code != c.code || !strings.Contains(last, c.says) || code == 2 && !strings.Contains(last, "zk ") {
					t.Errorf("exit %d, want %d and %q:\n%s", code, c.code, c.says, out)
				}
				if code == 1 && (!strings.Contains(last, zk+"/none") || !strings.Contains(last, "check the addresses and the network")) {
					t.Errorf("no remedy: %s", last)
				}
				unclaimed(t, dir)
			})
		}
	})
	own := freeAddress(t)
	code, out := broker(t, append(onServers(own+"/x"), "--site", "lost", "--data-dir", t.TempDir(), "--bootstrap", "--http", own, "--peer", freeAddress(t), "--gossip", freeAddress(t))...)
	if code != 2 || !strings.Contains(out, "zk "+own+": that is this broker's own http, and no ZooKeeper server") {
		t.Errorf("its own address: exit %d\n%s", code, out)
	}
	many := solo.Prepare(t, "site-2", append(onServers(strings.Join([]string{
		silent.Addr().String(), nobody, nobody6, "zk.invalid:2181",
		one.Peer, right,
	}, ",")+"/"+t.Name()),
		append(one.Invites("site-2"), "--cores", "1", "--gossip", solo.FreeAddress(t))...)...)
	many.Start()
	awaitEnd(t, many.Site, submit(t, many.Site, testbed.Spec{Command: []string{"true"}}).ID)
}

// TestOnZooKeeperAnotherEnsemble: data of one federation are not started on another one's
// tree, nor on none; the line names the server that was asked, and the data go on.
func TestOnZooKeeperAnotherEnsemble(t *testing.T) {
	t.Parallel()
	all, _ := votersOn(t, 1, zooKeeper(t))
	one := all[0]
	id := submit(t, one.Site, testbed.Spec{Command: []string{"true"}}).ID
	awaitEnd(t, one.Site, id)
	other := solo.New(t, "site-9", append(onServers(shared.servers.Addrs()+"/other/"+t.Name()), "--bootstrap", "--cores", "1")...)
	one.End(syscall.SIGTERM)
	for chroot, text := range map[string]string{
		"/other/" + t.Name(): "name the chroot of its own",
		"/nothing/here":      "does not exist at " + shared.servers.Addrs() + ", and this data is of federation",
	} {
		code, out := broker(t, append(onServers(shared.servers.Addrs()+chroot), "--site", one.Name, "--data-dir", one.Dir,
			"--http", one.URL.Host, "--peer", one.Peer, "--gossip", freeAddress(t))...)
		if last := lastLine(out); code != 1 || !strings.Contains(last, text) || !strings.Contains(last, chroot) {
			t.Errorf("%s: exit %d\n%s", chroot, code, out)
		}
	}
	ready(other)
	one.Start()
	if job, err := one.Job(within(t), id); err != nil || job.State != "succeeded" {
		t.Errorf("the job is %+v, %v", job, err)
	}
}

// TestOnZooKeeperIPv6: all addresses of a federation are IPv6.
func TestOnZooKeeperIPv6(t *testing.T) {
	t.Parallel()
	keys := zooKeeper(t)
	var first *solo.Broker
	for _, name := range []string{"site-1", "site-2"} {
		way := []string{"--bootstrap"}
		if first != nil {
			way = first.Invites(name)
		}
		b := solo.Prepare(t, name, slices.Concat(keys, []string{"--cores", "1", "--peer", six(t), "--gossip", six(t)}, way)...)
		b.Start()
		if first == nil {
			first = b
		}
		awaitEnd(t, b.Site, submit(t, b.Site, testbed.Spec{Command: []string{"true"}}).ID)
	}
	logged(first, "peer=[::1]:")
}

// six is a free address of IPv6's loopback.
func six(t *testing.T) string {
	t.Helper()
	addr, err := testbed.FreeAddressOf("::1")
	must(t, err)
	return addr
}

// twin is the port of an address at another address of the loopback, where a process can
// listen that then calls itself localhost: the first one's address.
func twin(addr string) string { return "127.0.0.2:" + portOf(addr) }

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// leads reports whether a broker takes a site for the leader, as an error.
func leads(b *solo.Broker, site string, want bool) error {
	st, err := b.Status(b.Context())
	if err == nil && (st.Leader == site) != want || err == nil && st.Leader == "" {
		err = fmt.Errorf("%q leads", st.Leader)
	}
	return err
}

// says reports, as an error, that no line has all texts.
func says(log string, texts ...string) error {
	for line := range strings.Lines(log) {
		missing := false
		for _, text := range texts {
			missing = missing || !strings.Contains(line, text)
		}
		if !missing {
			return nil
		}
	}
	return fmt.Errorf("no line with %q", texts)
}

// lastLine is what a command said last.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}
