package statecmd

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/record"
	"github.com/cloudshare/cloudshare/node/replica"
)

// moved is a federation of two sites, and the site a's broker that stands still.
type moved struct {
	dir     string
	replica *replica.Replica
	header  statefile.Header
}

func newMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{dir: t.TempDir(), replica: replica.NewReplica()}
	key := identity.Generate()
	if err := key.Save(filepath.Join(m.dir, config.KeyFile)); err != nil {
		t.Fatal(err)
	}
	nodes := map[string][16]byte{"a": key.Public().Node(), "b": {2}}
	federation := [16]byte{9}
	commands := []command.Command{{
		ID:   command.ID{Site: "a"},
		Body: &command.Genesis{Federation: federation, Params: command.DefaultParams()},
	}}
	for _, site := range []string{"a", "b"} {
		commands = append(commands, command.Command{ID: command.ID{Site: site}, Body: &command.Register{
			Node: nodes[site], Boot: [16]byte{1}, Known: [][16]byte{{1}}, MaxVersion: fsm.Version,
		}})
	}
	for _, c := range commands {
		res, err := m.replica.Apply(command.AppendBatch(nil, 3, 0, [][]byte{command.Append(nil, c)}, nil))
		if err != nil || res[0].Code != command.OK {
			t.Fatalf("%v, %v", res, err)
		}
	}
	m.header = statefile.Header{
		ID: strings.Repeat("01", 16), Backend: config.Raft, LastTerm: 3, LastIndex: 10, Voters: []string{"a", "b", "c"}, Site: "a",
	}
	journal, err := record.OpenJournal(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = journal.Identify("a", nodes["a"], false); err != nil {
		t.Fatal(err)
	}
	if err = journal.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

// file writes the state under a changed header.
func (m *moved) file(t *testing.T, name string, change func(*statefile.Header)) string {
	t.Helper()
	h := m.header
	change(&h)
	path := filepath.Join(t.TempDir(), name)
	if err := writeState(path, "test", &h, m.replica, [16]byte{9}, [16]byte{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// imports runs an import at a site with a data directory, and wants one line.
func imports(t *testing.T, site, dir string, code int, text string, files ...string) {
	t.Helper()
	cfg := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(cfg, []byte("site: "+site+"\ndata_dir: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, errs := runCLI(t, "", append([]string{"state", "import", "--config", cfg}, files...)...)
	if got != code || !strings.Contains(errs, text) || code != 0 && strings.Count(errs, "\n") != 1 {
		t.Errorf("import %v at %s: exit %d, want %d with %q\n%s", files, site, got, code, text, errs)
	}
}

// TestImportRefuses: what is in the way of an import is told in one line, and
// nothing is changed; then the same files are imported.
func TestImportRefuses(t *testing.T) {
	m := newMoved(t)
	a := m.file(t, "a", func(*statefile.Header) {})
	b := m.file(t, "b", func(h *statefile.Header) { h.Site, h.LastIndex = "b", 9 })
	imports(t, "a", m.dir, cli.ExitError, "no such file", a+".none")
	imports(t, "a", m.dir, cli.ExitRefused, "1 of the 3 voters", a)
	imports(t, "a", m.dir, cli.ExitRefused, "not of one federation, epoch and backend", a,
		m.file(t, "x", func(h *statefile.Header) { h.Site, h.Backend = "b", config.ZooKeeper }))
	imports(t, "a", m.dir, cli.ExitRefused, "header and state do not belong together", b, m.broken(t))
	imports(t, "a", t.TempDir(), cli.ExitUsage, "no broker's data", a, b)
	imports(t, "b", m.dir, cli.ExitRefused, "not a site of this federation", a, b)
	journal, err := record.OpenJournal(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	imports(t, "a", m.dir, cli.ExitRefused, "stop that broker", a, b)
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	m.been(t, config.ZKDir, 7)
	imports(t, "a", m.dir, cli.ExitRefused, "this site has been in epoch 7 since", a, b)
	if err := os.RemoveAll(filepath.Join(m.dir, config.ZKDir)); err != nil {
		t.Fatal(err)
	}
	imports(t, "a", m.dir, cli.ExitUsage, "--hold -1s", "--hold", "-1s", a, b)

	if _, err := os.Stat(filepath.Join(m.dir, config.RaftDir)); !os.IsNotExist(err) {
		t.Errorf("a refused import left %s: %v", config.RaftDir, err)
	}
	imports(t, "a", m.dir, cli.ExitOK, "a is the only voter", b, a)
	imports(t, "a", m.dir, cli.ExitRefused, "was imported already", a, b)
	if s, err := config.LatestState(m.dir); err != nil || s.Backend != config.Raft || s.Epoch != 1 ||
		s.Federation != [16]byte{9} {
		t.Errorf("%+v, %v", s, err)
	}
}

// broken is a whole file of voter c, newer than all, whose header tells of another
// entry than its state.
func (m *moved) broken(t *testing.T) string {
	t.Helper()
	frozen, err := m.replica.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Release()
	h := m.header
	h.Site, h.LastTerm, h.Entry, h.Federation = "c", 9, 1, hex.EncodeToString(append([]byte{9}, make([]byte, 15)...))
	path := filepath.Join(t.TempDir(), "c")
	if err := statefile.Create(path, h, frozen); err != nil {
		t.Fatal(err)
	}
	return path
}

// been writes what a site that was in an epoch on a backend has.
func (m *moved) been(t *testing.T, folder string, epoch int) {
	t.Helper()
	dir := filepath.Join(m.dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"version":1,"site":"a","federation":"` + strings.Repeat("09", 16) + `","epoch":` + string(rune('0'+epoch)) + `}`
	if err := os.WriteFile(filepath.Join(dir, "member.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLaterEpochCounts: a site that has been on both backends is where it was last.
func TestLaterEpochCounts(t *testing.T) {
	m := newMoved(t)
	where := func(want string) {
		t.Helper()
		if on, err := config.DataBackend(m.dir); err != nil || on != want {
			t.Errorf("on %q, not %q: %v", on, want, err)
		}
	}
	where("")
	m.been(t, config.RaftDir, 0)
	where(config.Raft)
	m.been(t, config.ZKDir, 1)
	where(config.ZooKeeper)
	c := config.Default()
	c.Site, c.DataDir = "a", m.dir
	if err := c.CheckFounding(); cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "cloudshare state import") {
		t.Error(err)
	}
	code, _, errs := runCLI(t, "", "state", "export", filepath.Join(t.TempDir(), "x"), "--data-dir", m.dir)
	if code != cli.ExitUsage || !strings.Contains(errs, "are on zookeeper") {
		t.Errorf("exit %d: %s", code, errs)
	}
	m.been(t, config.RaftDir, 2)
	where(config.Raft)
}

// TestDifferingStateIsNotRecovered: what a broker refuses to start on, since its state
// once differed from the others', neither `recover` nor an export goes on with.
func TestDifferingStateIsNotRecovered(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, config.DivergedDir)
	notice := `{"site": "site-2", "message": "at entry 40 it is another one"}`
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "diverged.json"), []byte(notice),
		0o600)); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{{"recover"}, {"state", "export", filepath.Join(dir, "x.state")}} {
		code, _, errs := runCLI(t, "", append(line, "--data-dir", dir)...)
		if code != cli.ExitRefused || !strings.Contains(errs, "at entry 40 it is another one") {
			t.Errorf("%s: exit %d, %s", line[0], code, errs)
		}
	}
}
