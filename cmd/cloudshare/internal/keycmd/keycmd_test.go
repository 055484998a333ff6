package keycmd

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/payloadkey"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
)

var testFederation = [16]byte{7}

// member answers for site-1 by the real state machine.
type member struct {
	*testing.T
	dir, addr string
	state     *fsm.State
	seq       uint64
	key       identity.Key
	silent    bool // it executes what it is asked, and its answer is lost
}

func newMember(t *testing.T) *member {
	t.Helper()
	key := identity.Generate()
	m := &member{T: t, dir: t.TempDir(), state: fsm.New(), key: key}
	if err := key.Save(filepath.Join(m.dir, config.KeyFile)); err != nil {
		t.Fatal(err)
	}
	m.apply(command.Command{ID: command.ID{Site: "site-1"}, Body: &command.Genesis{
		Federation: testFederation, Params: command.DefaultParams(), Founder: signature.Key(key.Public()),
	}})
	m.apply(command.Command{ID: command.ID{Site: "site-1"}, Body: &command.Register{
		Node: key.Public().Node(), Boot: [16]byte{1}, MaxVersion: fsm.Version,
	}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"site":"site-1","federation":%q}`, uuid.UUID(testFederation))
	})
	mux.HandleFunc("GET /v1/members", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"items":[%s],"next":""}`, m.shown())
	})
	mux.HandleFunc("POST /v1/members/site-1/key", m.replaceKey)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	m.addr = srv.URL
	return m
}

func (m *member) apply(c command.Command) command.Result {
	b := command.SignBundle(testFederation, c.ID.Site, 1, command.Append(nil, c), m.key.Sign)
	r, err := m.state.Apply(&command.Batch{Term: 1, Commands: []command.Command{c}, Bundles: []command.Bundle{b}})
	if err != nil {
		m.Fatal(err)
	}
	return r[0]
}

func (m *member) shown() string {
	x, _ := m.state.Member("site-1")
	recovery := ""
	if x.Recovery != (signature.Key{}) {
		recovery = identity.Public(x.Recovery).String()
	}
	return fmt.Sprintf(`{"site":"site-1","key":%q,"recovery":%q,"generation":%d}`, identity.Public(x.Key), recovery,
		x.Generation)
}

func (m *member) replaceKey(w http.ResponseWriter, r *http.Request) {
	var in struct{ Rekey string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		m.Error(err)
	}
	text, _ := base64.StdEncoding.DecodeString(in.Rekey)
	c, _, err := command.Decode(text)
	if err != nil {
		m.Error(err)
	}
	m.seq++
	id := command.ID{Site: "site-1", Incarnation: 1, Seq: m.seq}
	got := m.apply(command.Command{ID: id, Ack: m.seq - 1, Body: c.Body})
	switch {
	case m.silent:
		w.WriteHeader(http.StatusBadGateway)
	case got.Code != command.OK:
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"type":"urn:cloudshare:problem:refused","title":"No","status":409,"detail":%q}`, got.Code)
	default:
		fmt.Fprint(w, m.shown())
	}
}

// run runs `key` on the site's data.
func (m *member) run(stdin string, args ...string) (code int, out, errs string) {
	m.Helper()
	line := append([]string{"key", "--data-dir", m.dir, "--addr", m.addr}, args...)
	return clitest.Run(m.T, Commands, stdin, line...)
}

// inForce checks that the key in the folder is the one that the state has.
func (m *member) inForce() identity.Public {
	m.Helper()
	key, err := identity.Load(filepath.Join(m.dir, config.KeyFile))
	x, _ := m.state.Member("site-1")
	if err != nil || key.Public() != identity.Public(x.Key) {
		m.Fatalf("the folder has %s, the state %s (%v)", key.Public(), identity.Public(x.Key), err)
	}
	if _, err = os.Stat(filepath.Join(m.dir, config.NextKeyFile)); !os.IsNotExist(err) {
		m.Fatalf("the next key is left over: %v", err)
	}
	return key.Public()
}

// The public key is shown without anybody being asked, and no secret.
func TestShow(t *testing.T) {
	m := newMember(t)
	key := m.inForce()
	code, out, errs := m.run("", "show", "--addr", "http://127.0.0.1:1")
	if code != 0 || !strings.Contains(out, key.String()) || errs != "" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs = clitest.Run(t, Commands, "", "key", "show"); code != cli.ExitUsage {
		t.Errorf("without a folder: exit %d: %s", code, errs)
	}
}

// A key is rotated, also if the answer was lost on the way.
func TestRotate(t *testing.T) {
	m := newMember(t)
	old := m.inForce()
	m.silent = true
	if code, _, errs := m.run("", "rotate"); code == 0 || !strings.Contains(errs, "restart the broker, which asks them") ||
		strings.Count(errs, "\n") != 1 {
		t.Fatalf("the answer was not lost: exit %d, %s", code, errs)
	}
	m.silent = false
	code, out, errs := m.run("", "rotate")
	key := m.inForce()
	if code != 0 || key == old || !strings.Contains(out, key.String()) || !strings.Contains(errs, "Restart") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if x, _ := m.state.Member("site-1"); x.Generation != 1 {
		t.Errorf("the key was replaced %d times", x.Generation)
	}
}

// TestRotateGoesOn: once the broker on the folder has learned that the next key is in force, nobody is asked.
func TestRotateGoesOn(t *testing.T) {
	m := newMember(t)
	m.silent = true
	m.run("", "rotate")
	next, err := identity.Load(filepath.Join(m.dir, config.NextKeyFile))
	id := next.Public().Node()
	err = errorsOf(err, os.MkdirAll(filepath.Join(m.dir, config.RaftDir), 0o700),
		facade.SaveMember(filepath.Join(m.dir, config.RaftDir), map[string]any{
			"version": 3, "site": "site-1", "node": hex.EncodeToString(id[:]), "federation": uuid.UUID(testFederation).String(),
		}), credentials.Learn(m.dir, credentials.Founded(testFederation, "site-1", next.Public())))
	if err != nil {
		t.Fatal(err)
	}
	m.addr = "http://127.0.0.1:1"
	code, out, errs := m.run("", "rotate")
	if code != 0 || !strings.Contains(out, next.Public().String()) || !strings.Contains(errs, "Restart") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	m.inForce()
}

// TestRotateAnsweredByAnotherSite: the broker on the folder has not heard that the key is replaced; another says so.
// The folder was of no use then, for its roster had the key of before, which was gone: no broker started on it.
func TestRotateAnsweredByAnotherSite(t *testing.T) {
	m := newMember(t)
	old := m.inForce()
	before := credentials.Founded(testFederation, "site-1", old)
	before.Index = 3
	if err := credentials.Learn(m.dir, before); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := m.run("", "rotate"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	m.inForce()
	if settled, err := credentials.Settle(m.dir, "site-1"); !settled || err != nil {
		t.Errorf("a start: settled %t, %v", settled, err)
	}
	// It may have lied.
	former, err := identity.Load(filepath.Join(m.dir, config.FormerKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if former.Public() != old {
		t.Errorf("the key of before is %s, not %s", former.Public(), old)
	}
}

// The recovery key is printed once, alone, and replaces a key that is lost; the saved roster knows the new one.
func TestRecover(t *testing.T) {
	m := newMember(t)
	code, text, errs := m.run("", "backup")
	if code != 0 || !strings.HasPrefix(text, "csr_") || strings.Count(text, "\n") != 1 || strings.Contains(errs, "csr_") {
		t.Fatalf("exit %d: %s%s", code, text, errs)
	}
	var out string
	if code, out, errs = m.run("", "backup"); code != cli.ExitRefused || out != "" || !strings.Contains(errs, "rebind") {
		t.Errorf("again: exit %d: %s%s", code, out, errs)
	}
	old := m.inForce()
	trust, err := truststore.Open(filepath.Join(m.dir, config.RosterFile), nil)
	if err == nil {
		err = trust.Update(truststore.Roster{
			Federation: testFederation, Index: 3, Members: []truststore.Entry{{Site: "site-1", Key: old}},
		})
	}
	if err = errorsOf(err, os.Remove(filepath.Join(m.dir, config.KeyFile))); err != nil {
		t.Fatal(err)
	}
	if code, _, errs = m.run("csr_wrong", "recover"); code != cli.ExitUsage || strings.Count(errs, "\n") != 1 {
		t.Errorf("a wrong text: exit %d: %s", code, errs)
	}
	_, stranger := identity.NewRecovery()
	if code, _, errs = m.run(stranger, "recover"); code != cli.ExitRefused || strings.Contains(errs, "csr_") {
		t.Errorf("a foreign one: exit %d: %s", code, errs)
	}
	if code, out, errs := m.run(text, "recover"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	key := m.inForce()
	if trust, err = truststore.Open(filepath.Join(m.dir, config.RosterFile), nil); err != nil {
		t.Fatal(err)
	}
	if saved, _ := trust.Key("site-1"); key == old || saved != key {
		t.Errorf("old %s, new %s, saved %s", old, key, saved)
	}
	if m.key, err = identity.Load(filepath.Join(m.dir, config.KeyFile)); err != nil {
		t.Fatal(err)
	}
	r := m.apply(command.Command{ID: command.ID{Site: "site-1"}, Body: &command.Register{
		Node: key.Node(), Boot: [16]byte{2}, Known: [][16]byte{{2}}, MaxVersion: fsm.Version, After: 1,
	}})
	if r.Code != command.OK { // on an empty disk, which remembers no registration
		t.Errorf("the site does not come back: %v", r.Code)
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The next secret is written beside the one of now, once, for its owner alone.
func TestRotatePayload(t *testing.T) {
	dir := t.TempDir()
	run := func() (int, string) {
		code, _, msg := clitest.Run(t, Commands, "", "key", "rotate-payload", "--data-dir", dir)
		return code, msg
	}
	if code, msg := run(); code != cli.ExitError || !strings.Contains(msg, "first start") {
		t.Errorf("without a secret: exit %d, %s", code, msg)
	}
	if err := payloadkey.Write(filepath.Join(dir, config.SecretFile), [][32]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	if code, msg := run(); code != cli.ExitOK || !strings.Contains(msg, "Restart the broker") {
		t.Errorf("exit %d, %s", code, msg)
	}
	path := filepath.Join(dir, config.NextSecret)
	list, err := payloadkey.Read(path) // which refuses what others may read
	if err != nil || len(list) != 1 || list[0] == [32]byte{1} {
		t.Errorf("%d secrets, %v", len(list), err)
	}
	if code, msg := run(); code != cli.ExitRefused || !strings.Contains(msg, "there already") {
		t.Errorf("again: exit %d, %s", code, msg)
	}
	if again, err := payloadkey.Read(path); err != nil || again[0] != list[0] {
		t.Errorf("it was written again: %v", err)
	}
}
