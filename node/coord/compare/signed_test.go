package compare

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/test/goldenfile"
)

// keyed is who a site is, among those that have keys.
type keyed struct {
	identity.Key
	roster keys
}

func (k keyed) Roster() relay.Roster { return k.roster }

// keys are those of some sites, all of them electors.
type keys map[string]identity.Public

func (k keys) Key(site string) (identity.Public, bool) {
	key, known := k[site]
	return key, known
}

func (k keys) Find(key identity.Public) relay.Standing {
	for site, of := range k {
		if of == key {
			return relay.Standing{Site: site, Elector: true}
		}
	}
	return relay.Standing{}
}

func keyOf(site string) identity.Key {
	var seed [32]byte
	copy(seed[:], site)
	return identity.FromSeed(seed)
}

var testGroup = Group{[16]byte{1}, [16]byte{2}}

// secure gives all checkers of a group keys.
func (g *group) secure() {
	roster := keys{}
	for _, m := range g.members {
		roster[m.Site] = keyOf(m.Site).Public()
	}
	for site, c := range g.all {
		c.cfg.Identity, c.cfg.Group = keyed{keyOf(site), roster}, testGroup
		c.cfg.Proofs = filepath.Join(g.t.TempDir(), "evidence")
	}
}

// answers has a site answer who dials from outside with statements of its own that it signs.
func (g *group) answers(site string, points ...coord.Checkpoint) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		if q, err := relay.ReadFrame(conn, nil, maxQuestion); err != nil || q[0] != questionOwn {
			return
		}
		var list []Statement
		for _, p := range points {
			s := Statement{Site: site, Checkpoint: p, Format: "v1"}
			s.Signature = keyOf(site).Sign(signedStatement, s.parts(testGroup)...)
			list = append(list, s)
		}
		_, _ = conn.Write(relay.EndFrame(appendStatements(relay.Frame(nil), list)))
	}
}

// evidence returns the file that a site has kept, of those whose names begin so.
func (g *group) evidence(site, prefix string) []byte {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.all[site].cfg.Proofs, prefix+"*.json"))
	if err != nil || len(files) != 1 {
		g.t.Fatalf("%s has kept %v, %v", site, files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		g.t.Fatal(err)
	}
	return b
}

func TestSignedComparisons(t *testing.T) {
	g := newGroup(t, "a b c", "n", map[string]string{"a": "x", "b": "x", "c": "x", "n": "y"})
	g.secure()
	for _, site := range []string{"a", "n"} {
		g.run(site)
	}
	if c := g.all["a"].Compared(); len(c.Same) != 2 || c.Differ["n"] != 7 || c.Unsure != "" || len(c.Liars) > 0 {
		t.Errorf("compared %+v", c)
	}
	if len(g.stops["n"]) != 1 || len(g.stops["a"]) > 0 {
		t.Errorf("stops %v", g.stops)
	}
	for _, site := range []string{"a", "n"} {
		of := map[string]string{"a": "differs-n-7", "n": "differs-a-7"}[site]
		p, err := CheckEvidence(g.evidence(site, of))
		if err != nil || fmt.Sprint(p.Camps) != "[[b c a] [n]]" && fmt.Sprint(p.Camps) != "[[a b c] [n]]" ||
			!strings.Contains(p.String(), "does not prove which is right") || strings.Contains(p.String(), "\n") {
			t.Errorf("%s: %v, %v", site, p, err)
		}
	}
}

// An answer that its site has not signed, or not for this group, is none; people are told, once.
func TestUnsignedAnswersAreNone(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "y"})
	g.secure()
	good := Statement{Site: "b", Checkpoint: lie[1], Format: "v1"}
	for name, forge := range map[string]func(s *Statement){
		"no signature":       func(s *Statement) { s.Signature = nil },
		"another's":          func(s *Statement) { s.Signature = keyOf("a").Sign(signedStatement, s.parts(testGroup)...) },
		"another group's":    func(s *Statement) { s.Signature = keyOf("b").Sign(signedStatement, s.parts(Group{})...) },
		"another purpose":    func(s *Statement) { s.Signature = keyOf("b").Sign("x", s.parts(testGroup)...) },
		"another entry's":    func(s *Statement) { s.Entry = 3 },
		"another history's":  func(s *Statement) { s.Chain[31]++ },
		"another state's":    func(s *Statement) { s.Hash[31]++ },
		"of no state":        func(s *Statement) { s.Hashed = false },
		"of another version": func(s *Statement) { s.Format = "v2" },
	} {
		s := good
		s.Signature = keyOf("b").Sign(signedStatement, s.parts(testGroup)...)
		forge(&s)
		g.serve["b"] = func(conn net.Conn) {
			defer conn.Close()
			_, _ = relay.ReadFrame(conn, nil, maxQuestion)
			_, _ = conn.Write(relay.EndFrame(appendStatements(relay.Frame(nil), []Statement{s})))
		}
		g.logs["a"].Reset()
		clear(g.all["a"].unproven)
		g.run("a")
		if c := g.all["a"].Compared(); len(c.Differ) > 0 || c.Entry != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if n := strings.Count(g.logs["a"].String(), "is not signed by its key"); n != 1 {
			t.Errorf("%s: told %d times: %s", name, n, g.logs["a"])
		}
	}
}

// One that says now this and now that of one entry is proven to lie by its own signatures.
func TestContradictionIsProven(t *testing.T) {
	g := newGroup(t, "a b c", "", map[string]string{"a": "x", "b": "x", "c": "x"})
	g.secure()
	told := lie[1]
	told.Hash = Hash{'x'}
	g.serve["c"] = g.answers("c", told)
	g.run("a")
	if c := g.all["a"].Compared(); len(c.Liars) > 0 || len(c.Differ) > 0 {
		t.Fatalf("%+v", c)
	}
	g.serve["c"] = g.answers("c", lie[1])
	g.run("a")
	if c := g.all["a"].Compared(); c.Liars["c"] != 7 || c.Unsure != "" || len(g.stops["a"]) > 0 {
		t.Errorf("%+v, stops %v", c, g.stops)
	}
	if n := strings.Count(g.logs["a"].String(), "has signed two different"); n != 1 {
		t.Errorf("told %d times", n)
	}
	p, err := CheckEvidence(g.evidence("a", "lied-c-7"))
	if err != nil || fmt.Sprint(p.Lied) != "[c]" || !strings.Contains(p.String(), "proves that c signed two different") {
		t.Errorf("%v, %v", p, err)
	}
	g.members = g.members[:2]
	g.run("a")
	if c := g.all["a"].Compared(); len(c.Liars) > 0 {
		t.Errorf("it is no member any more: %+v", c)
	}
}

// A leader that tells each of two sites another history, and each what it wants to hear, is found when these two
// compare: each has what it signed for the other one. Before, neither knows; afterwards, neither lends.
func TestEquivocationIsProven(t *testing.T) {
	g := newGroup(t, "a b l", "", map[string]string{"a": "x", "b": "y", "l": "x"})
	g.secure()
	signedFor := func(state byte) func(net.Conn) {
		p := lie[1]
		p.Hash = Hash{state}
		return g.answers("l", p)
	}
	all := g.members
	for _, site := range []string{"a", "b"} {
		g.serve["l"] = signedFor(map[string]byte{"a": 'x', "b": 'y'}[site])
		g.members = append([]Member{{Site: site, Voter: true}}, all[2])
		g.run(site)
		if c := g.all[site].Compared(); len(c.Differ) > 0 || len(c.Same) != 1 {
			t.Fatalf("%s: %+v", site, c)
		}
	}
	g.members = all
	for _, site := range []string{"a", "b"} {
		other := map[string]string{"a": "b", "b": "a"}[site]
		g.serve["l"] = signedFor(map[string]byte{"a": 'x', "b": 'y'}[site])
		g.run(site)
		if c := g.all[site].Compared(); c.Liars["l"] != 7 || c.Differ[other] != 7 {
			t.Errorf("%s: %+v", site, c)
		}
		if p, err := CheckEvidence(g.evidence(site, "lied-l-7")); err != nil || fmt.Sprint(p.Lied) != "[l]" {
			t.Errorf("%s: %v, %v", site, p, err)
		}
	}
}

// Where no majority of the voters has what a member has, it begins nothing for others while somebody differs. One
// that differs from a majority makes nobody unsure, nor does one that lies.
func TestUnsure(t *testing.T) {
	for name, c := range map[string]struct {
		voters, others string
		hash           map[string]string
		away           string
		unsure         string
	}{
		"two voters":                     {"a b", "", map[string]string{"a": "x", "b": "y"}, "", "a b"},
		"one of three differs":           {"a b c", "", map[string]string{"a": "x", "b": "x", "c": "y"}, "", ""},
		"one of three differs, one away": {"a b c", "", map[string]string{"a": "x", "b": "x", "c": "y"}, "b", "a c"},
		"one who does not vote differs":  {"a b c", "n", map[string]string{"a": "x", "b": "x", "c": "x", "n": "y"}, "", ""},
		"two who do not vote, the rest is away": {
			"v", "n o", map[string]string{"v": "x", "n": "x", "o": "y"}, "v", "n o",
		},
		"all the same": {"a b", "n", map[string]string{"a": "x", "b": "x", "n": "x"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, c.voters, c.others, c.hash)
			g.secure()
			if c.away != "" {
				g.serve[c.away] = func(conn net.Conn) { conn.Close() }
			}
			var unsure []string
			for _, m := range g.members {
				if m.Site == c.away {
					continue
				}
				if g.run(m.Site); len(g.stops[m.Site]) > 0 {
					continue
				}
				told := strings.Count(g.logs[m.Site].String(), "no task of another site is started here")
				if why := g.all[m.Site].Compared().Unsure; why != "" {
					unsure = append(unsure, m.Site)
					if !strings.Contains(why, "differs from that of") || told != 1 {
						t.Errorf("told %d times: %s", told, why)
					}
				} else if told > 0 {
					t.Errorf("%s is not unsure, and told of one", m.Site)
				}
			}
			if strings.Join(unsure, " ") != c.unsure {
				t.Errorf("unsure are %v", unsure)
			}
		})
	}
}

// Unsure ends when the two agree again.
func TestUnsureEnds(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "y"})
	g.run("a")
	if g.all["a"].Compared().Unsure == "" {
		t.Fatal("it is sure")
	}
	m := g.all["b"].cfg.Machine.(*fake)
	m.mu.Lock()
	m.points = g.all["a"].cfg.Machine.Checkpoints()
	m.mu.Unlock()
	g.run("a")
	if c := g.all["a"].Compared(); c.Unsure != "" || len(c.Differ) > 0 {
		t.Errorf("%+v", c)
	}
}

// It ends, too, when the other one leaves, and nobody is left to compare with.
func TestUnsureEndsAlone(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "y"})
	g.run("a")
	if g.all["a"].Compared().Unsure == "" {
		t.Fatal("it is sure")
	}
	g.members = g.members[:1]
	g.run("a")
	if c := g.all["a"].Compared(); c.Unsure != "" || len(c.Differ) > 0 || !c.Alone {
		t.Errorf("%+v", c)
	}
}

// Between two hashes of the state, and with members of another version, the histories are compared.
func TestHistoriesAreCompared(t *testing.T) {
	head := func(entry uint64, chain byte) coord.Checkpoint {
		return coord.Checkpoint{Entry: entry, Chain: Hash{chain}}
	}
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "x"})
	g.secure()
	set := func(site string, points ...coord.Checkpoint) {
		m := g.all[site].cfg.Machine.(*fake)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.points = points
	}
	set("a", head(8, 1), head(9, 2))
	set("b", head(8, 1), head(9, 2))
	g.run("a")
	if c := g.all["a"].Compared(); c.Entry != 9 || len(c.Same) != 1 {
		t.Errorf("the same: %+v", c)
	}
	set("a", head(9, 2), head(10, 3))
	set("b", head(9, 2), head(10, 4))
	g.run("a")
	if c := g.all["a"].Compared(); c.Differ["b"] != 10 || !strings.Contains(c.Unsure, "its history differs") {
		t.Errorf("another history: %+v", c)
	}
	if _, err := CheckEvidence(g.evidence("a", "differs-b-10")); err != nil {
		t.Error(err)
	}
}

// A state that differed is not forgotten because later heads of the chain are the same: they say nothing of it.
func TestHistoryDoesNotClearState(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "y"})
	g.run("a")
	for _, site := range []string{"a", "b"} {
		m := g.all[site].cfg.Machine.(*fake)
		m.points = []coord.Checkpoint{{Entry: 9}}
	}
	g.run("a")
	if c := g.all["a"].Compared(); c.Differ["b"] != 7 || c.Unsure == "" {
		t.Errorf("%+v", c)
	}
}

// Nothing is said of entries that an earlier life of the broker may have spoken of: one that a restart has healed
// would seem to lie.
func TestNothingIsSaidOfEarlierLives(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "y"})
	g.secure()
	b := g.all["b"]
	b.floor.Store(7)
	g.run("a")
	if c := g.all["a"].Compared(); c.Entry != 0 || len(b.statements()) > 0 {
		t.Errorf("compared %+v, said %v", c, b.statements())
	}
	b.floor.Store(3)
	if said := b.statements(); len(said) != 1 || said[0].Entry != 7 {
		t.Errorf("said %v", said)
	}
	b.begun.Store(false)
	if said := b.statements(); len(said) > 0 {
		t.Errorf("said %v before it knows from where on", said)
	}
}

// Evidence that is changed in any bit, or cut, is refused.
func TestEvidenceIsWhole(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "y"})
	g.secure()
	g.run("a")
	file := g.evidence("a", "differs-b-7")
	if _, err := CheckEvidence(file); err != nil {
		t.Fatal(err)
	}
	const step = 5 // so that each of a byte's bits has its turn
	for bit := 0; bit < 8*len(file); bit++ {
		if bit%step > 0 && bit/8 < len(file)-200 { // the writer's signature stands last, and nothing else guards it
			continue
		}
		b := bytes.Clone(file)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := CheckEvidence(b); !errors.Is(err, ErrEvidence) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("bit %d changed: %v", bit, err)
		}
	}
	for n := range file {
		if _, err := CheckEvidence(file[:n]); !errors.Is(err, ErrEvidence) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

// Who differs now and then again fills no disk, and takes no other's place.
func TestEvidenceIsBounded(t *testing.T) {
	g := newGroup(t, "a b c", "", map[string]string{"a": "x", "b": "x", "c": "x"})
	g.secure()
	a := g.all["a"]
	for i := range uint64(2 * maxProofs) {
		a.keepProof("differs", "b", i, a.statements())
	}
	a.keepProof("lied", "b", 7, a.statements())
	a.keepProof("differs", "c", 7, a.statements())
	for i := range 2 * maxProofs {
		a.keepProof("differs", fmt.Sprint("d", i), 7, a.statements())
	}
	all, err := os.ReadDir(a.cfg.Proofs)
	of, cause := filepath.Glob(filepath.Join(a.cfg.Proofs, "differs-b-*"))
	if err != nil || cause != nil || len(all) != maxProofs || len(of) != maxProofsOf {
		t.Errorf("%d files, %d of b: %v, %v", len(all), len(of), err, cause)
	}
}

// TestEvidenceWaitsForTheDisk: what a disk does not take is written once it does.
func TestEvidenceWaitsForTheDisk(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "x"})
	g.secure()
	a := g.all["a"]
	folder := a.cfg.Proofs
	a.cfg.Proofs = filepath.Join(folder, "in the way", "evidence")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(a.cfg.Proofs), nil, 0o600); err != nil { // where the folder would be
		t.Fatal(err)
	}
	for i := range uint64(2 * maxProofs) {
		a.keepProof("differs", fmt.Sprint("d", i), 7, a.statements())
	}
	if a.writeAgain(); len(a.unwritten) != maxProofs {
		t.Fatalf("%d files wait, want %d", len(a.unwritten), maxProofs)
	}
	if err := os.Remove(filepath.Dir(a.cfg.Proofs)); err != nil {
		t.Fatal(err)
	}
	a.writeAgain()
	all, err := os.ReadDir(a.cfg.Proofs)
	if err != nil || len(all) != maxProofs || len(a.unwritten) != 0 {
		t.Fatalf("%d files were written, %d wait: %v", len(all), len(a.unwritten), err)
	}
	file, err := os.ReadFile(filepath.Join(a.cfg.Proofs, all[0].Name()))
	if err == nil {
		_, err = parseEvidence(file)
	}
	if err != nil {
		t.Error(err)
	}
}

// The evidence of differences within one camp, or of nobody, proves nothing.
func TestEvidenceOfNothing(t *testing.T) {
	g := newGroup(t, "a b", "", map[string]string{"a": "x", "b": "x"})
	g.secure()
	a, b := g.all["a"], g.all["b"]
	of := func(list ...Statement) []byte {
		file, err := a.evidence(list).seal(a.cfg.Identity)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	own, theirs := a.statements(), b.statements()
	stranger := theirs[1]
	stranger.Site = "z"
	for name, file := range map[string][]byte{
		"nothing":            of(),
		"one":                of(own[0]),
		"they agree":         of(own[1], theirs[1]),
		"two entries":        of(own[0], theirs[1]),
		"a site without key": of(own[1], stranger),
	} {
		if p, err := CheckEvidence(file); !errors.Is(err, ErrEvidence) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte(`{"evidence":{"cloudshare_evidence":1,"statements":[{},{}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := CheckEvidence(b); err == nil {
			t.Errorf("proves %v", p)
		}
	})
}

// TestEvidenceFormat: files that were written once can be read later, too.
func TestEvidenceFormat(t *testing.T) {
	g := newGroup(t, "a b", "n", map[string]string{"a": "x", "b": "y", "n": "x"})
	g.secure()
	a, b, n := g.all["a"], g.all["b"], g.all["n"]
	lied := b.statements()[1]
	lied.Hash[0]++
	lied.Signature = keyOf("b").Sign(signedStatement, lied.parts(testGroup)...)
	for name, c := range map[string]struct {
		list []Statement
		says string
	}{
		"differs.json": {[]Statement{b.statements()[1], n.statements()[1], a.statements()[1]}, "of n a and of b differ at entry 7"},
		"lied.json":    {[]Statement{b.statements()[1], lied}, "proves that b signed two"},
	} {
		e := a.evidence(c.list)
		e.At = time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
		file, err := e.seal(a.cfg.Identity)
		if err != nil {
			t.Fatal(err)
		}
		goldenfile.Match(t, name, string(file))
		if p, err := CheckEvidence(file); err != nil || !strings.Contains(p.String(), c.says) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}
