package compare

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/identity"
)

// signedEvidence is the purpose of the signature of a whole file, by who wrote it.
const signedEvidence = "cloudshare evidence 1"

// MaxEvidence bounds a file of evidence, in bytes.
const MaxEvidence = 1 << 20

// maxListed bounds the members of a file.
const maxListed = 1024

// ErrEvidence reports a file that is no evidence, or not as its writer signed it.
var ErrEvidence = errors.New("that is no evidence")

// Evidence is what sites have signed of one entry, as one of them has kept it. All that a third party needs stands in
// it, but for whose the keys really are: that is by the roster of who wrote it.
type Evidence struct {
	Format     int           `json:"cloudshare_evidence"`
	Federation string        `json:"federation"`
	Lineage    string        `json:"lineage"`
	Reporter   string        `json:"reporter"`
	At         time.Time     `json:"at"`
	Statements []SignedState `json:"statements"`
	Members    []ListedKey   `json:"members"`
}

// SignedState is a statement.
type SignedState struct {
	Site      string          `json:"site"`
	Key       identity.Public `json:"key"`
	Entry     uint64          `json:"entry"`
	Chain     string          `json:"chain"`
	State     string          `json:"state,omitempty"` // hash
	Hashed    string          `json:"hashed"`          // what it is taken over
	Signature string          `json:"signature"`
}

// ListedKey is a member, by the roster of who wrote the file.
type ListedKey struct {
	Site    string          `json:"site"`
	Key     identity.Public `json:"key"`
	Elector bool            `json:"elector,omitempty"`
	Voter   bool            `json:"voter,omitempty"` // in the group of now
}

// evidenceFile is how it is written: indented, with a line's end. No other form of the same is taken.
type evidenceFile struct {
	Evidence  Evidence `json:"evidence"`
	Signature string   `json:"reporter_signature"`
}

func (f *evidenceFile) encode() ([]byte, error) {
	b, err := json.MarshalIndent(f, "", "  ")
	return append(b, '\n'), err
}

// seal signs evidence, and returns the file.
func (e *Evidence) seal(by Identity) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	f := evidenceFile{*e, hex.EncodeToString(by.Sign(signedEvidence, b))}
	if b, err = f.encode(); err == nil && len(b) > MaxEvidence {
		err = fmt.Errorf("%w: %d bytes", ErrEvidence, len(b))
	}
	return b, err
}

// shown returns a statement as a file has it.
func (s *Statement) shown(key identity.Public) SignedState {
	out := SignedState{
		Site: s.Site, Key: key, Entry: s.Entry, Chain: hex.EncodeToString(s.Chain[:]),
		Hashed: hex.EncodeToString([]byte(s.Format)), Signature: hex.EncodeToString(s.Signature),
	}
	if s.Hashed {
		out.State = hex.EncodeToString(s.Hash[:])
	}
	return out
}

// statement returns what a file has.
func (s *SignedState) statement() (Statement, error) {
	chain, err := hex.DecodeString(s.Chain)
	state, cause := hex.DecodeString(s.State)
	sig, reason := hex.DecodeString(s.Signature)
	format, why := hex.DecodeString(s.Hashed)
	err = errors.Join(err, cause, reason, why)
	if err != nil || !command.ValidSite(s.Site) || len(chain) != len(Hash{}) ||
		len(state) != len(Hash{}) && s.State != "" {
		return Statement{}, fmt.Errorf("%w: what %.80q has said is malformed", ErrEvidence, s.Site)
	}
	c := coord.Checkpoint{Entry: s.Entry, Chain: Hash(chain), Hashed: s.State != ""}
	copy(c.Hash[:], state)
	return Statement{s.Site, c, string(format), sig}, nil
}

// Proof is what evidence proves.
type Proof struct {
	Evidence Evidence
	Entry    uint64
	// Lied are the sites that have signed two different histories or states of it.
	Lied []string
	// Camps are the sites that have signed the same, the greatest first; two at least unless
	// somebody lied.
	Camps [][]string
}

// CheckEvidence reads a file of evidence and checks every signature in it. It needs nothing else.
func CheckEvidence(file []byte) (*Proof, error) {
	f, err := parseEvidence(file)
	if err != nil {
		return nil, err
	}
	e := &f.Evidence
	g, err := e.group()
	if err != nil {
		return nil, err
	}
	if err = e.checkReporter(f.Signature); err != nil {
		return nil, err
	}
	list := make([]Statement, len(e.Statements))
	for i := range e.Statements {
		s := &e.Statements[i]
		if list[i], err = s.statement(); err != nil {
			return nil, err
		}
		if key, known := e.keyOf(s.Site); !known || key != s.Key || !list[i].SignedBy(key, g) {
			return nil, fmt.Errorf("%w: what %s is to have said is not signed by its key", ErrEvidence, s.Site)
		}
		if s.Entry != list[0].Entry {
			return nil, fmt.Errorf("%w: it is of more than one entry", ErrEvidence)
		}
	}
	return prove(e, list)
}

// parseEvidence reads a file that is written as it should be, to the last byte.
func parseEvidence(file []byte) (f evidenceFile, err error) {
	if len(file) > MaxEvidence {
		return f, fmt.Errorf("%w: it is larger than %d bytes", ErrEvidence, MaxEvidence)
	}
	if err = json.Unmarshal(file, &f); err != nil || f.Evidence.Format != 1 {
		return f, fmt.Errorf("%w: give a file of the folder `evidence` in a broker's data_dir", ErrEvidence)
	}
	again, err := f.encode()
	if err != nil || !bytes.Equal(again, file) {
		return f, fmt.Errorf("%w: it was changed since it was written", ErrEvidence)
	}
	if len(f.Evidence.Statements) < 2 {
		return f, fmt.Errorf("%w: nobody is contradicted in it", ErrEvidence)
	}
	return f, nil
}

func (e *Evidence) group() (Group, error) {
	fed, err := hex.DecodeString(e.Federation)
	line, cause := hex.DecodeString(e.Lineage)
	if err != nil || cause != nil || len(fed) != 16 || len(line) != 16 {
		return Group{}, fmt.Errorf("%w: it names no federation", ErrEvidence)
	}
	return Group{[16]byte(fed), [16]byte(line)}, nil
}

// Signed returns what sites have signed, and of which group. REQUIRES: CheckEvidence took the file.
func (e *Evidence) Signed() (Group, []Statement) {
	g, _ := e.group()
	list := make([]Statement, len(e.Statements))
	for i := range list {
		list[i], _ = e.Statements[i].statement()
	}
	return g, list
}

// keyOf returns a site's key by the list of members.
func (e *Evidence) keyOf(site string) (identity.Public, bool) {
	i := slices.IndexFunc(e.Members, func(m ListedKey) bool { return m.Site == site })
	if i < 0 {
		return identity.Public{}, false
	}
	return e.Members[i].Key, true
}

// checkReporter checks the signature of who wrote the file.
func (e *Evidence) checkReporter(signature string) error {
	key, known := e.keyOf(e.Reporter)
	sig, err := hex.DecodeString(signature)
	b, cause := json.Marshal(e)
	whole := err == nil && cause == nil && hex.EncodeToString(sig) == signature // in lower case
	if !known || !whole || !key.Verify(sig, signedEvidence, b) {
		return fmt.Errorf("%w: it is not as %.80q, who wrote it, has signed it", ErrEvidence, e.Reporter)
	}
	return nil
}

// prove finds out what statements of one entry prove.
func prove(e *Evidence, list []Statement) (*Proof, error) {
	p := &Proof{Evidence: *e, Entry: list[0].Entry}
	var camps [][]*Statement
	for i := range list {
		s := &list[i]
		for k := range i {
			if list[k].Site == s.Site && list[k].Contradicts(s) && !slices.Contains(p.Lied, s.Site) {
				p.Lied = append(p.Lied, s.Site)
			}
		}
		if !slices.ContainsFunc(list, func(o Statement) bool { return o.Contradicts(s) }) {
			continue // it says less than others, and nothing against anybody
		}
		at := slices.IndexFunc(camps, func(c []*Statement) bool {
			return !slices.ContainsFunc(c, func(o *Statement) bool { return o.Contradicts(s) })
		})
		if at < 0 {
			at, camps = len(camps), append(camps, nil)
		}
		camps[at] = append(camps[at], s)
	}
	if len(camps) < 2 {
		return nil, fmt.Errorf("%w: nobody is contradicted in it", ErrEvidence)
	}
	slices.SortStableFunc(camps, func(a, b []*Statement) int { return len(b) - len(a) })
	for _, c := range camps {
		var sites []string
		for _, s := range c {
			sites = append(sites, s.Site)
		}
		p.Camps = append(p.Camps, slices.Compact(sites))
	}
	return p, nil
}

// String says in one line what is proven, and what is not.
func (p *Proof) String() string {
	whose := fmt.Sprintf("if the keys are theirs: %s says so", p.Evidence.Reporter)
	if len(p.Lied) > 0 {
		return fmt.Sprintf("proves that %s signed two different histories or states of entry %d, "+
			"which no honest broker does (%s)",
			strings.Join(p.Lied, ", "), p.Entry, whose)
	}
	sides := make([]string, len(p.Camps))
	for i, c := range p.Camps {
		sides[i] = strings.Join(c, " ")
	}
	return fmt.Sprintf("proves that the histories or states of %s differ at entry %d (%s); it does not prove which is right",
		strings.Join(sides, " and of "), p.Entry, whose)
}
