package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// TestKeyRotation: a voter's key is replaced while its broker runs. After a restart it goes on with what it had, among
// those that know its new key.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	s := fed.Sites[2]
	before := keyOf(t, fed.Sites[0], s.Name)
	own := submit(t, s, testbed.Spec{Command: []string{"true"}}).ID
	awaitEnd(t, s, own)
	if code, out, errs := cli(t, s, "key", "rotate", "--data-dir", filepath.Join(s.Dir, "data")); code != 0 ||
		strings.Contains(out, before) {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if after := keyOf(t, fed.Sites[0], s.Name); after == before {
		t.Errorf("the members know %s for it", after)
	}
	must(t, s.Kill())
	must(t, fed.Restart(within(t), s))
	if job, err := s.Job(within(t), own); err != nil || job.State != "succeeded" {
		t.Errorf("its job is %+v, %v", job, err)
	}
	must(t, fed.Sites[0].Kill()) // the two others are a quorum
	awaitEnd(t, s, submit(t, s, testbed.Spec{Command: []string{"true"}}).ID)
	must(t, fed.Restart(within(t), fed.Sites[0]))
	agree(t, fed)
}

// TestKeyRecovery: a site loses its disk, key and all, but not its recovery key: it comes back under its name on an
// empty
// folder. Its old key opens nothing any more.
func TestKeyRecovery(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	one, two := all[0], all[1]
	code, recovery, errs := cli(t, two.Site, "key", "backup", "--data-dir", two.Dir)
	if code != 0 || strings.Count(recovery, "\n") != 1 {
		t.Fatalf("exit %d\n%s%s", code, recovery, errs)
	}
	if code, _, errs = cli(t, two.Site, "key", "backup", "--data-dir", two.Dir); code != 5 ||
		!strings.Contains(errs, "no other replaces it") {
		t.Errorf("a second one: exit %d\n%s", code, errs)
	}
	stolen := networkOf(t, two.Dir)
	two.End(syscall.SIGKILL)

	file, again := filepath.Join(t.TempDir(), "recovery"), filepath.Join(t.TempDir(), "again")
	must(t, os.WriteFile(file, []byte(recovery), 0o600))
	code, text, errs := cli(t, one.Site, "invite", "--again", two.Site.Name)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	must(t, os.WriteFile(again, []byte(text), 0o600))
	back := solo.Prepare(t, two.Site.Name, slices.Concat(backend(t), []string{"--cores", "1", "--join", "@" + again})...)
	wantCommand(t, 2, []string{"both read from standard input"}, "key", "recover", "--data-dir", back.Dir, "--join", "-")
	wantCommand(
		t,
		0,
		[]string{"Start its broker now"},
		"key",
		"recover",
		"--data-dir",
		back.Dir,
		"--join",
		"@"+again,
		"--file",
		file,
	)
	back.Start()
	awaitEnd(t, back.Site, submit(t, back.Site, testbed.Spec{Command: []string{"true"}}).ID)
	for _, kind := range []relay.Kind{relay.KindRaft, relay.KindForward, relay.KindJoin, relay.KindHTTP} {
		err := refusedAs(t, stolen, two.Site.Name, relay.Peer{Site: one.Site.Name, Addr: one.Peer}, kind, [16]byte{})
		if !errors.Is(err, relay.ErrUnknownKey) {
			t.Errorf("kind %d by the old key: %v", kind, err)
		}
	}
	must(t, testbed.AwaitEqualState(within(t), one.Site, back.Site, all[2].Site))
}

// keyOf returns a site's key as another one knows it.
func keyOf(t *testing.T, at *testbed.Site, site string) string {
	t.Helper()
	members, err := at.Members(within(t))
	must(t, err)
	for _, m := range members {
		if m.Site == site {
			return m.Key
		}
	}
	t.Fatalf("%s is no member: %+v", site, members)
	return ""
}
