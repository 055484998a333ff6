package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/replica"
)

// maxStatements bounds what is collected, some 100 MB.
const maxStatements = 1 << 18

// maxOfEntry bounds what is taken of one entry: more than all members sign.
const maxOfEntry = 4 * fsm.MaxMembers

// Signed is what a site has signed of its history and its state.
type Signed struct {
	compare.Statement
	Lineage [16]byte

	elsewhere bool // it does not stand in the source
}

// StatementsOf returns the statements of a source. What cannot be read ends them: who goes through the source finds it.
func StatementsOf(ctx context.Context, src *history.Source) ([]Signed, error) {
	var list []Signed
	t := src.Stream()
	for {
		rec, cause := t.Next()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch {
		case history.Passable(cause) != nil:
			continue
		case cause != nil:
			return list, nil //nolint:nilerr // see above
		case rec.Kind != history.KindStatement:
			continue
		}
		lineage, s, err := history.ParseStatement(rec.Contents)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: byte %d: %w", t.Name(), rec.At, err)
		case len(list) == maxStatements:
			return nil, fmt.Errorf("%s: more than %d statements: export a shorter range", t.Name(), maxStatements)
		}
		list = append(list, Signed{Statement: s, Lineage: lineage})
	}
}

// SignedIn returns the statements of a file of evidence that compare.CheckEvidence took.
func SignedIn(e *compare.Evidence) []Signed {
	g, list := e.Signed()
	out := make([]Signed, len(list))
	for i := range list {
		out[i] = Signed{Statement: list[i], Lineage: g.Lineage}
	}
	return out
}

// said tells statements apart.
type said struct {
	site, signature string
	lineage         [16]byte
	coord.Checkpoint
}

// byEntry returns the statements of the source and those from elsewhere by the entry that they are of, each once.
func byEntry(ctx context.Context, own, others []Signed) (map[uint64][]Signed, error) {
	out, known := map[uint64][]Signed{}, map[said]bool{}
	for i, s := range slices.Concat(own, others) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		k := said{s.Site, string(s.Signature), s.Lineage, s.Checkpoint}
		if known[k] {
			continue
		}
		if len(out[s.Entry]) == maxOfEntry {
			return nil, fmt.Errorf("more than %d statements of entry %d: no federation signs as many", maxOfEntry, s.Entry)
		}
		s.elsewhere, known[k] = i >= len(own), true
		out[s.Entry] = append(out[s.Entry], s)
	}
	return out, nil
}

// recomputed is what a verifier has behind an entry.
type recomputed struct {
	entry  uint64
	chain  replica.Chain
	hash   [32]byte
	hashed bool
}

// doubtful is a statement whose key was not that of its site when the entry was applied: it may have been replaced
// before the site signed.
type doubtful struct {
	Signed
	own   recomputed
	agree []string // who has signed what stands here
}

// differs says in what a statement differs from what was recomputed; "" = in nothing.
func (r *recomputed) differs(s *Signed, format string) string {
	switch {
	case s.Chain != r.chain:
		return History
	case s.Hashed && r.hashed && s.Format == format && s.Hash != r.hash:
		return State
	}
	return ""
}

// signedBy reports whether a statement is signed by one of some keys.
func (s *Signed) signedBy(federation [16]byte, keys ...signature.Key) bool {
	g := compare.Group{Federation: federation, Lineage: s.Lineage}
	return slices.ContainsFunc(keys, func(k signature.Key) bool { return s.SignedBy(identity.Public(k), g) })
}
