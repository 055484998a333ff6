package enroll

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
)

var testFederation = [16]byte{7}

// member is site a, which has founded a federation, and answers at its peer port by the real state machine.
type member struct {
	*testing.T

	mu    sync.Mutex
	state *fsm.State
	seq   uint64
	trust *truststore.Store
	key   identity.Key
	keys  map[string]identity.Key // of other sites that propose
	addr  string
}

func newMember(t *testing.T) *member {
	t.Helper()
	m := &member{T: t, state: fsm.New(), key: identity.Generate()}
	var err error
	if m.trust, err = truststore.Open(filepath.Join(t.TempDir(), "roster"), nil); err != nil {
		t.Fatal(err)
	}
	m.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: testFederation, Params: command.DefaultParams(), Founder: signature.Key(m.key.Public()),
	}})
	r := m.apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Register{
		Node: m.key.Public().Node(), Boot: [16]byte{1}, MaxVersion: fsm.Version,
	}})
	if r.Code != command.OK {
		t.Fatal(r.Code)
	}
	own, err := relay.NewIdentity(m.key, m.trust)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = ln.Addr().String()
	mux := relay.NewMux(ln, "a", 2*time.Second, zerolog.Nop(), &relay.Network{Identity: own})
	mux.Handle(relay.KindEnroll, func(conn net.Conn, _ relay.Preamble) { _ = Serve(t.Context(), conn, m) })
	mux.Serve()
	t.Cleanup(mux.Close)
	return m
}

// apply has the state execute an entry of one command, and the store know its roster.
func (m *member) apply(c command.Command) command.Result {
	signer, others := m.keys[c.ID.Site]
	if !others {
		signer = m.key
	}
	b := command.SignBundle(testFederation, c.ID.Site, 1, command.Append(nil, c), signer.Sign)
	r, err := m.state.Apply(&command.Batch{Term: 1, Commands: []command.Command{c}, Bundles: []command.Bundle{b}})
	if err != nil {
		m.Fatal(err)
	}
	known := truststore.Roster{Federation: testFederation, Index: m.state.RosterChanged()}
	for _, x := range m.state.Roster().Members {
		known.Members = append(known.Members, truststore.Entry{
			Site: x.Site, Key: identity.Public(x.Key), Elector: x.Elector, Banned: x.Banned,
			Deciding: x.Deciding(0),
		})
	}
	if err := m.trust.Update(known); err != nil {
		m.Fatal(err)
	}
	return r[0]
}

// order has a command of a ordered.
func (m *member) order(body command.Body) command.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	return m.apply(command.Command{ID: command.ID{Site: "a", Incarnation: 1, Seq: m.seq}, Ack: m.seq - 1, Body: body})
}

func (m *member) Enroll(_ context.Context, body command.Body) (command.Code, error) {
	return m.order(body).Code, nil
}

func (m *member) Waiting(*command.Admit) []string { return []string{"b", "c"} }

func (m *member) Roster() truststore.Roster { return m.trust.Roster() }

// invite returns an invitation of a site.
func (m *member) invite(site string) *invitation.Invitation {
	v := &invitation.Invitation{
		Federation: testFederation, Site: site, Inviter: m.key.Public().Node(), Addresses: []string{"127.0.0.1:1", m.addr},
	}
	copy(v.Seed[:], site+" is invited")
	r := m.order(&command.Invite{
		Key: signature.Key(identity.FromSeed(v.Seed).Public()), Site: site, Elector: true, ForMs: 60_000,
	})
	if r.Code != command.OK {
		m.Fatal(r.Code)
	}
	return v
}

// asking is a site that knows nobody.
func asking(t *testing.T, site string, key identity.Key) *Asking {
	t.Helper()
	trust, err := truststore.Open(filepath.Join(t.TempDir(), "roster"), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := relay.NewIdentity(key, trust)
	if err != nil {
		t.Fatal(err)
	}
	return &Asking{Dialer: &relay.Dialer{Net: &relay.Network{Identity: own}, Site: site}, Every: time.Millisecond}
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// One text admits one site, which then knows the members; the same site may ask again, as after a crash.
func TestJoin(t *testing.T) {
	m := newMember(t)
	v, key := m.invite("b"), identity.Generate()
	for range 2 {
		r, err := asking(t, "b", key).Join(patient(t), v, key)
		if err != nil || r.Federation != testFederation || len(r.Members) != 2 || r.Members[1].Key != key.Public() {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	thief := identity.Generate()
	_, err := asking(t, "b", thief).Join(patient(t), v, thief)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "was used, with another key") {
		t.Errorf("a thief: %v", err)
	}
}

// Every reason not to be admitted says so in one line, with what to do.
func TestRefusals(t *testing.T) {
	m := newMember(t)
	key := identity.Generate()
	for name, c := range map[string]struct {
		spoil func(v *invitation.Invitation)
		says  string
	}{
		"a foreign federation": {func(v *invitation.Invitation) { v.Federation = [16]byte{8} }, "the question is for 08"},
		"an unknown one":       {func(v *invitation.Invitation) { v.Seed = [32]byte{9} }, "ask for another one"},
		"another name":         {func(v *invitation.Invitation) { v.Site = "z" }, "another site's name"},
		"revoked": {func(v *invitation.Invitation) {
			m.order(&command.Revoke{Key: signature.Key(identity.FromSeed(v.Seed).Public())})
		}, "was revoked"},
	} {
		v := m.invite("site-" + string('a'+rune(len(name)%26)))
		c.spoil(v)
		_, err := asking(t, v.Site, key).Join(patient(t), v, key)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(m.trust.Roster().Members); n != 1 {
		t.Errorf("%d members", n)
	}
}

// As long as the electors have not agreed, the site waits, and says for whom.
func TestPending(t *testing.T) {
	m := newMember(t)
	other := identity.Generate()
	v := m.invite("b")
	if _, err := asking(t, "b", other).Join(patient(t), v, other); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.keys = map[string]identity.Key{"b": other}
	m.apply(command.Command{ID: command.ID{Site: "b"}, Body: &command.Register{
		Node: other.Public().Node(), Boot: [16]byte{2}, MaxVersion: fsm.Version,
	}})
	m.mu.Unlock()
	v, key := m.invite("c"), identity.Generate()
	a := asking(t, "c", key)
	waits := make(chan string, 8)
	a.Waiting = func(why string) { waits <- why }
	done := make(chan error, 1)
	go func() {
		_, err := a.Join(patient(t), v, key)
		done <- err
	}()
	if why := <-waits; why != "waiting for the approval of b, c" {
		t.Errorf("it waits: %s", why)
	}
	m.mu.Lock()
	r := m.apply(command.Command{
		ID:   command.ID{Site: "b", Incarnation: 1, Seq: 1},
		Body: &command.Vote{Motion: m.state.Roster().Last, Yes: true},
	})
	m.mu.Unlock()
	if err := <-done; err != nil || r.Code != command.OK {
		t.Errorf("%v, %v", r.Code, err)
	}
}

// Nobody else can answer in the inviter's place, whatever listens at its address.
func TestOnlyTheInviterAnswers(t *testing.T) {
	m, other := newMember(t), newMember(t)
	v, key := m.invite("b"), identity.Generate()
	v.Addresses = []string{other.addr}
	ctx, cancel := context.WithCancelCause(t.Context())
	a := asking(t, "b", key)
	a.Waiting = func(why string) { cancel(errors.New(why)) }
	if _, err := a.Join(ctx, v, key); !strings.Contains(err.Error(), relay.ErrOtherKey.Error()) {
		t.Errorf("%v", err)
	}
	if slices.ContainsFunc(other.trust.Roster().Members, func(e truststore.Entry) bool { return e.Site == "b" }) {
		t.Error("b was admitted elsewhere")
	}
}

// What proves nothing is not ordered, and what no question is neither.
func TestForeignQuestions(t *testing.T) {
	m := newMember(t)
	bad, err := encodeQuestion(testFederation, "b", &command.Leave{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range [][]byte{nil, []byte("{}"), []byte("[]"), bad} {
		if a := decide(t.Context(), q, asker{}, m); a.Verdict != Refused {
			t.Errorf("%q: %+v", q, a)
		}
	}
	if a := decide(t.Context(), mustEncode(t), asker{}, nil); a.Verdict != Later {
		t.Errorf("while it starts: %+v", a)
	}
}

func mustEncode(t *testing.T) []byte {
	t.Helper()
	b, err := encodeQuestion(testFederation, "b", &command.Admit{
		Invitation: signature.Key{1}, Site: "b", Key: signature.Key{2},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzParse(f *testing.F) {
	good, _ := encodeQuestion(testFederation, "b", &command.Admit{
		Invitation: signature.Key{1}, Site: "b", Key: signature.Key{2},
	})
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, body, err := parseQuestion(data); err == nil {
			if _, err := encodeQuestion(testFederation, "b", body); err != nil {
				t.Fatal(err)
			}
		}
		_, _, _ = parseAnswer(data)
	})
}

// A member is told who the members are, a stranger is not.
func TestOnlyMembersAreToldTheRoster(t *testing.T) {
	m := newMember(t)
	v, key := m.invite("b"), identity.Generate()
	if _, err := asking(t, "b", key).Join(patient(t), v, key); err != nil {
		t.Fatal(err)
	}
	to := relay.Peer{Addr: m.addr}
	if r, err := asking(t, "b", key).Roster(patient(t), to, testFederation); err != nil || len(r.Members) != 2 {
		t.Errorf("b is told %+v, %v", r, err)
	}
	if _, err := asking(t, "b", key).Roster(patient(t), to, [16]byte{8}); !errors.Is(err, ErrRefused) {
		t.Errorf("of another federation: %v", err)
	}
	stranger := identity.Generate()
	if r, err := asking(t, "b", stranger).Roster(patient(t), to, testFederation); !errors.Is(err, ErrRefused) ||
		len(r.Members) > 0 {
		t.Errorf("a stranger is told %+v, %v", r, err)
	}
}

// TestRefreshSaysThatTheKeyIsUnknown: a member whose key was replaced is told so, not that too few agree: it waited for
// electors that answered all the time.
func TestRefreshSaysThatTheKeyIsUnknown(t *testing.T) {
	m := newMember(t)
	key := identity.Generate()
	v := m.invite("b")
	known, err := asking(t, "b", key).Join(patient(t), v, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  identity.Key
		want error
	}{"known": {key, nil}, "replaced": {identity.Generate(), relay.ErrUnknownKey}} {
		a := asking(t, "b", c.key)
		trust, err := truststore.Open(filepath.Join(t.TempDir(), "roster"), nil)
		if err == nil {
			err = trust.Reset(known)
		}
		own, cause := relay.NewIdentity(c.key, trust)
		if err = errors.Join(err, cause); err != nil {
			t.Fatal(err)
		}
		a.Dialer.Net = &relay.Network{Identity: own}
		if _, err = a.Refresh(patient(t), known, []relay.Peer{{Site: "a", Addr: m.addr}}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A newer roster counts once more than half of the electors tell it; one of them alone, or an older one, does not.
func TestAgreedRoster(t *testing.T) {
	of := func(index uint64, sites ...string) truststore.Roster {
		r := truststore.Roster{Federation: testFederation, Index: index}
		for _, s := range sites {
			r.Members = append(r.Members, truststore.Entry{Site: s})
		}
		return r
	}
	now := of(5, "a")
	for name, c := range map[string]struct {
		told     []truststore.Roster
		electors int
		want     uint64
		fails    bool
	}{
		"both":           {[]truststore.Roster{of(7, "a", "b"), of(7, "a", "b")}, 2, 7, false},
		"one of two":     {[]truststore.Roster{of(7, "a", "b")}, 2, 5, true},
		"one lies":       {[]truststore.Roster{of(9, "evil"), of(7, "a", "b"), of(7, "a", "b")}, 3, 7, false},
		"they differ":    {[]truststore.Roster{of(9, "evil"), of(9, "a", "b")}, 2, 5, false},
		"nothing newer":  {[]truststore.Roster{of(5, "a"), of(5, "a")}, 2, 5, false},
		"older":          {[]truststore.Roster{of(4, "x"), of(4, "x")}, 2, 5, false},
		"the only one":   {[]truststore.Roster{of(6, "a")}, 1, 6, false},
		"nobody answers": {nil, 3, 5, true},
	} {
		r, err := agreed(now, c.told, c.electors)
		if r.Index != c.want || (err != nil) != c.fails {
			t.Errorf("%s: entry %d, %v", name, r.Index, err)
		}
	}
}
