package credentials

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

// elector answers at a peer port who the members are.
type elector struct{ trust *truststore.Store }

func (e elector) Roster() truststore.Roster { return e.trust.Roster() }

func (e elector) Waiting(*command.Admit) []string { return nil }

func (e elector) Enroll(context.Context, command.Body) (command.Code, error) { return command.OK, nil }

// listen has a site answer by a roster until the test ends.
func listen(t *testing.T, site string, key identity.Key, r truststore.Roster) relay.Peer {
	t.Helper()
	trust, err := truststore.Open(filepath.Join(t.TempDir(), "roster"), nil)
	if err == nil {
		err = trust.Reset(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	own, err := relay.NewIdentity(key, trust)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := relay.NewMux(ln, site, 10*time.Second, zerolog.Nop(), &relay.Network{Identity: own})
	mux.Handle(relay.KindEnroll, func(conn net.Conn, _ relay.Preamble) {
		_ = enroll.Serve(context.Background(), conn, elector{trust})
	})
	mux.Serve()
	t.Cleanup(mux.Close)
	return relay.Peer{Site: site, Addr: ln.Addr().String()}
}

// rosterOf is a roster in which a site has a key beside electors.
func rosterOf(index uint64, site string, key identity.Key, electors map[string]identity.Key) truststore.Roster {
	r := truststore.Roster{Federation: [16]byte{7}, Index: index}
	add := func(site string, k identity.Key) {
		r.Members = append(r.Members, truststore.Entry{Site: site, Key: k.Public(), Elector: true, Deciding: true})
	}
	add(site, key)
	for _, s := range []string{"b", "c"} {
		add(s, electors[s])
	}
	return r
}

// TestConfirm: that the members have a site's next key is believed if more than half of the electors say so, by their
// keys; one that lies costs the site nothing. Asking changes no file.
func TestConfirm(t *testing.T) {
	old, next := identity.FromSeed([32]byte{1}), identity.FromSeed([32]byte{2})
	electors := map[string]identity.Key{"b": identity.FromSeed([32]byte{3}), "c": identity.FromSeed([32]byte{4})}
	before, after := rosterOf(3, "a", old, electors), rosterOf(4, "a", next, electors)
	lie := rosterOf(9, "a", next, electors)
	for name, c := range map[string]struct {
		b, c  *truststore.Roster // nil: it is away
		taken bool
	}{
		"both have it":   {&after, &after, true},
		"none has it":    {&before, &before, false},
		"one lies":       {&lie, &before, false},
		"one is away":    {&after, nil, false},
		"they differ":    {&lie, &after, false},
		"nobody answers": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, old, next, old)
			if err := Learn(dir, before); err != nil {
				t.Fatal(err)
			}
			files := contents(t, dir)
			var members []relay.Peer
			for site, r := range map[string]*truststore.Roster{"b": c.b, "c": c.c} {
				p := relay.Peer{Site: site, Addr: "127.0.0.1:1"}
				if r != nil {
					p = listen(t, site, electors[site], *r)
				}
				members = append(members, p)
			}
			r, taken, err := Confirm(t.Context(), dir, "a", nil, members)
			if taken != c.taken || taken && err != nil || taken && r.Index != after.Index {
				t.Errorf("taken %t by entry %d, %v", taken, r.Index, err)
			}
			if !slices.Equal(contents(t, dir), files) {
				t.Error("asking has changed the folder")
			}
		})
	}
	if _, taken, err := Confirm(t.Context(), t.TempDir(), "a", nil, nil); taken || err != nil {
		t.Errorf("without a next key: %t, %v", taken, err)
	}
}

// contents returns the files of a data folder that say who the site is.
func contents(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, name := range []string{config.KeyFile, config.NextKeyFile, config.RosterFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}

// TestFormerKeyStays: until the log shows that the next key is in force, the one of before can be put back; the oldest
// stays if several follow each other unproven.
func TestFormerKeyStays(t *testing.T) {
	var keys []identity.Key
	for i := range byte(3) {
		keys = append(keys, identity.FromSeed([32]byte{i + 1}))
	}
	dir := folder(t, keys[0], keys[1], keys[1])
	if yes, err := Replaced(dir, "a"); !yes || err != nil {
		t.Errorf("replaced: %t, %v", yes, err)
	}
	for i, key := range keys[1:] {
		if i > 0 {
			r := Founded([16]byte{7}, "a", key.Public())
			r.Index = 1
			if err := errors.Join(key.Save(filepath.Join(dir, config.NextKeyFile)), Learn(dir, r)); err != nil {
				t.Fatal(err)
			}
		}
		if settled, err := Settle(dir, "a"); !settled || err != nil {
			t.Fatalf("settled %t, %v", settled, err)
		}
		now, err := identity.Load(filepath.Join(dir, config.KeyFile))
		former, cause := identity.Load(filepath.Join(dir, config.FormerKeyFile))
		if err = errors.Join(err, cause); err != nil || now.Public() != key.Public() ||
			former.Public() != keys[0].Public() {
			t.Errorf("%d: now %v, former %v, %v", i, now.Public(), former.Public(), err)
		}
	}
	for range 2 {
		if err := Proven(dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, config.FormerKeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("proven, and it stays: %v", err)
	}
	if yes, err := Replaced(dir, "a"); yes || err != nil {
		t.Errorf("replaced: %t, %v", yes, err)
	}
}
