package replay

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/node/history"
)

// maxDamaged bounds the stretches that are named.
const maxDamaged = 64

// passDamage goes beyond damage that is passable. In a file that was exported it ends the audit: what was handed over
// is not what was written.
func (v *verifier) passDamage(err error) bool {
	d := history.Passable(err)
	if d == nil {
		return false
	}
	if !v.hole.Open() {
		v.pending = v.hurt
	}
	v.passing = nil
	v.hole.Add(d)
	if v.hurt++; len(v.report.Damaged) < maxDamaged {
		v.report.Damaged = append(v.report.Damaged, Damage{File: d.File, From: d.From, To: d.To})
	}
	return true
}

// missed notes which entries are missing because of the damage that stands in front of what came now; from 0: none.
func (v *verifier) missed(from, to uint64) {
	if from != 0 && v.pending < len(v.report.Damaged) {
		d := &v.report.Damaged[v.pending]
		d.First, d.Last = from, to
	}
}

// passHole goes on at the state of an entry, and reports whether those before it were damaged.
func (v *verifier) passHole(to uint64) bool {
	v.missed(v.hole.Ends(v.index(), v.state != nil, to), to)
	damaged := v.hole.Open() || v.hole.Adrift()
	v.hole = history.Hole{}
	return damaged
}

// closeDamage notes at the end what could not be gone through.
func (v *verifier) closeDamage() {
	v.report.Cut = v.hole.Adrift()
	if n := v.hurt - len(v.report.Damaged); n > 0 {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("%d more stretches are damaged", n))
	}
}

// behind says which entries damage in an exported file has cost.
func (v *verifier) behind() string {
	for {
		rec, err := v.t.Next()
		switch {
		case v.ctx.Err() != nil, err != nil && !errors.Is(err, history.ErrDamaged):
			return ""
		case rec.Number == 0: // a statement, a state
		case rec.Number <= v.index() || rec.Kind == history.KindEntry && rec.Number == v.index()+1:
			return "; no entry is missing by that"
		case rec.Kind == history.KindEntry:
			rec.Number--
			fallthrough
		default:
			return "; missing: " + history.Range(v.index()+1, rec.Number)
		}
	}
}
