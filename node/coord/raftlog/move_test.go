package raftlog

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// exported is what one export read.
type exported struct {
	Survey
	state []byte
}

// export exports a stopped site's data.
func (c *cluster) export(t *testing.T, site, crash string) (x exported, err error) {
	t.Helper()
	o, m := c.offline(site, crash), coordtest.NewMachine()
	o.Machine = func() coord.Machine { return m }
	err = Export(patience(t), o, func(v Survey) error {
		x.Survey = v
		s, err := m.Snapshot()
		if err != nil {
			return err
		}
		var b bytes.Buffer
		err = s.Write(&b)
		x.state = b.Bytes()
		return err
	})
	return x, err
}

// founding says how x goes on at a site.
func (c *cluster) founding(x exported, site string) Founding {
	return Founding{
		Site: site, Node: coordtest.Node(site), Federation: x.Federation, Epoch: x.Epoch, Lineage: x.Lineage,
		Term: 900, Origin: x.Moved, Addr: c.net.Addr(site),
	}
}

// found imports x at a site.
func (c *cluster) found(t *testing.T, x exported, f Founding, crash string) error {
	t.Helper()
	o, m := c.offline(f.Site, crash), coordtest.NewMachine()
	if err := m.Restore(bytes.NewReader(x.state)); err != nil {
		t.Fatal(err)
	}
	o.Machine = func() coord.Machine { return m }
	return Found(o, f)
}

// TestExport: brokers that run are seen, exported data are sealed, and a sealed
// majority orders nothing any more until it is reopened.
func TestExport(t *testing.T) {
	c := newCluster(t)
	logs := []*Log{c.open(t, "a"), c.open(t, "b"), c.open(t, "c"), c.open(t, "d")}
	for _, l := range logs {
		register(t, l)
	}
	_, err := c.export(t, "c", "")
	wants(t, err, ErrLocked, "stop it")
	closed(t, logs[2:]...)
	_, err = c.export(t, "d", "")
	wants(t, err, coord.ErrRunning, "a answers at "+logs[0].Addr(), "stop all")
	entries, _ := logs[0].cfg.Machine.(*coordtest.Machine).Entries()
	closed(t, logs[:2]...)

	_, err = c.export(t, "a", "seal")
	wants(t, err, errCrash)
	c.openErr(t, "a", coord.ErrMoved, func(*Config) {}, "cloudshare state reopen", "imported")
	a, err := c.export(t, "a", "")
	if err != nil || a.Entry < entries || len(a.state) == 0 || a.Lineage != c.fed || a.LastTerm == 0 {
		t.Errorf("%+v after entry %d, %v", a.Survey, entries, err)
	}
	again, err := c.export(t, "a", "")
	if err != nil || again.Moved != a.Moved || again.LastIndex != a.LastIndex || again.Entry != a.Entry {
		t.Errorf("exported again: %+v, %v", again.Survey, err)
	}
	b, err := c.export(t, "b", "")
	if err != nil || b.Moved == a.Moved {
		t.Errorf("%+v, %v", b.Survey, err)
	}
	wants(t, Recover(patience(t), c.offline("a", ""), 0), coord.ErrMoved, "reopen")
	c.openErr(t, "b", coord.ErrMoved, func(*Config) {})

	for _, site := range []string{"a", "b", "b"} { // where nothing is sealed nothing changes
		if err := Reopen(patience(t), c.offline(site, "")); err != nil {
			t.Fatal(err)
		}
	}
	for _, site := range []string{"a", "b"} {
		c.open(t, site)
	}
	if at, err := c.running()[0].Sync(patience(t)); err != nil || at < entries {
		t.Errorf("entry %d, %v", at, err)
	}
}

// TestFound: a federation of three voters goes on from an exported state in a
// directory that had its data before or never had any, wherever the import was
// cut off; the others follow with their old data, and the terms go on.
func TestFound(t *testing.T) {
	c, _ := lostQuorum(t)
	x, err := c.export(t, "c", "")
	if err != nil {
		t.Fatal(err)
	}
	f := c.founding(x, "c")
	wants(t, c.found(t, x, f, ""), ErrExistingData, "epoch 0", "move the directory away")

	// The federation was on another backend in epoch 4: what is here is older.
	f.Epoch, f.Lineage, f.Origin = 4, [16]byte{7}, hex.EncodeToString(make([]byte, 16))
	for _, step := range []string{"mark", "empty", "write"} {
		wants(t, c.found(t, x, f, step), errCrash)
		c.openErr(t, "c", ErrUnfinished, func(*Config) {}, "cloudshare state import FILE")
		wants(t, Recover(patience(t), c.offline("c", ""), 0), ErrUnfinished, "state import")
		_, err := c.export(t, "c", "")
		wants(t, err, ErrUnfinished, "state import")
		other := f
		other.Origin = "another"
		wants(t, c.found(t, x, other, ""), ErrUnfinished, f.Origin)
	}
	if err := c.found(t, x, f, ""); err != nil {
		t.Fatal(err)
	}
	wants(t, c.found(t, x, f, ""), ErrExistingData, "imported here already")

	lead := c.open(t, "c")
	wants(t, c.found(t, x, f, ""), ErrLocked)
	register(t, lead)
	if at, err := lead.Sync(patience(t)); err != nil || command.EpochOf(at) != 5 {
		t.Errorf("entry %x, %v", at, err)
	}
	if st := lead.Status(); st.Term <= f.Term || !slices.Equal(st.Voters, []string{"c"}) || lead.Federation() != c.fed {
		t.Errorf("%+v", st)
	}
	for _, site := range []string{"a", "d"} {
		if err := Follow(patience(t), c.offline(site, ""), lead.Addr()); err != nil {
			t.Fatal(err)
		}
		l := c.open(t, site)
		register(t, l)
		if _, err := l.Sync(patience(t)); err != nil || l.Lineage() != lead.Lineage() {
			t.Errorf("%s: lineage %x, %v", site, l.Lineage(), err)
		}
	}
	// e was a member on the other backend only.
	o := c.offline("e", "")
	wants(t, Follow(patience(t), o, lead.Addr()), ErrNoData)
	o.As = &Newcomer{Site: "e", Node: coordtest.Node("e"), Federation: c.fed, Epoch: 5, Lineage: f.Lineage}
	wants(t, Follow(patience(t), o, lead.Addr()), ErrEpoch, "only a later one")
	o.As.Epoch = f.Epoch
	if err := Follow(patience(t), o, lead.Addr()); err != nil {
		t.Fatal(err)
	}
	cfg := c.config("e", coordtest.NewMachine())
	cfg.Join = nil
	e, err := Open(patience(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	register(t, e)
	closed(t, e)
	fails(t, c.open(t, "b"), ErrEpoch, "epoch 5", "--follow") // what was not sealed hears of it
}

// TestFoundOnNothing: a directory that never had a log; another site's and another
// federation's are refused and stay as they are.
func TestFoundOnNothing(t *testing.T) {
	c, _ := lostQuorum(t)
	x, err := c.export(t, "c", "")
	if err != nil {
		t.Fatal(err)
	}
	f := c.founding(x, "c")
	f.Federation = [16]byte{9}
	wants(t, c.found(t, x, f, ""), coord.ErrForeign)
	f = c.founding(x, "c")
	f.Node = [16]byte{9}
	wants(t, c.found(t, x, f, ""), ErrIdentity)
	f = c.founding(x, "c")
	f.Epoch = command.MaxEpoch
	wants(t, c.found(t, x, f, ""), ErrConfig)
	if v, err := Inspect(patience(t), c.offline("c", "")); err != nil || v.Entry != x.Entry || v.Moved != x.Moved {
		t.Errorf("%+v, %v", v, err)
	}

	c.dir = filepath.Join(c.dir, "elsewhere")
	f = c.founding(x, "c")
	if err := c.found(t, x, f, ""); err != nil {
		t.Fatal(err)
	}
	lead := c.open(t, "c")
	register(t, lead)
	if at, err := lead.Sync(patience(t)); err != nil || command.EpochOf(at) != 1 {
		t.Errorf("entry %x, %v", at, err)
	}
}
