package replay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Options of Verify.
type Options struct {
	// Keys are those that sites have by somebody else's word.
	Keys map[string]identity.Public
	// Statements are from elsewhere; see StatementsOf.
	Statements []Signed
	// Progress is told how many bytes of the source were gone through; nil: nobody is.
	Progress func(done int64)
}

// verifier goes through a history.
type verifier struct {
	Options
	ctx    context.Context //nolint:containedctx // of Verify, which makes it and ends with it
	report *Report
	t      *history.Stream
	said   map[uint64][]Signed

	state   *fsm.State // nil before the first one is read
	chain   replica.Chain
	keys    keyring                    // of now
	line    map[string][]signature.Key // by site: its key of now, behind those that it replaced in entries here
	strange map[string]uint64          // sites whose key came by the file's word, and in which entry
	word    uint64                     // entry of a state behind a gap that no known key has signed yet, 0 = none
	passing *place                     // in a stretch that was gone through before; nil: not in one
	roster  uint64                     // entry in which keys last changed
	from    uint64                     // decisions of the state that was given last
	doubts  []doubtful
	unknown uint64 // statements by keys of which nothing is known here

	hole    history.Hole // damage in front of what comes now
	pending int          // the first of report.Damaged of which it is not known what is missing by it
	hurt    int          // stretches of damage

	agreed   Point  // the last one that was signed
	suspect  uint64 // the first entry since then that holds what is not its site's word, 0 = none
	suspects string // who is named there
}

// Verify goes through a source. The report is of what was found up to the first difference. An error means that it
// could not be gone through: it is empty, ctx has ended, or it goes by rules that this version does not know
// (fsm.ErrNewVersion).
func Verify(ctx context.Context, src *history.Source, o Options) (*Report, error) {
	own, err := StatementsOf(ctx, src)
	if err != nil {
		return nil, err
	}
	said, err := byEntry(ctx, own, o.Statements)
	if err != nil {
		return nil, err
	}
	v := &verifier{
		Options: o, ctx: ctx, t: src.Stream(), said: said,
		line: map[string][]signature.Key{}, strange: map[string]uint64{},
		report: &Report{
			Refused: map[string]uint64{}, Lost: map[string]uint64{}, Unproven: unproven,
			Notes: append([]string{}, src.Notes...), Gaps: []Gap{}, Damaged: []Damage{}, Dissent: []Difference{},
			Members: []Member{}, Ledger: []Account{},
		},
	}
	if err = v.run(ctx); err != nil {
		return nil, err
	}
	r := v.finish()
	r.Verdict = r.judge()
	return r, ctx.Err()
}

// errEmpty reports a file without a state.
var errEmpty = fmt.Errorf("%w: it does not begin with a state", history.ErrFormat)

// run goes through all windows, each while the next one is read.
func (v *verifier) run(ctx context.Context) error {
	w := readWindow(v.t, v.keys)
	if v.state == nil && len(w.entries) > 0 {
		return errEmpty
	}
	for {
		ahead := make(chan *window, 1)
		follows := w.next == nil && w.err == nil
		if keys := v.keys; follows {
			go func() { ahead <- readWindow(v.t, keys) }()
		}
		err := errors.Join(v.apply(w), ctx.Err())
		if follows {
			w = <-ahead
		}
		switch {
		case err != nil || v.report.Difference != nil:
			return err
		case follows:
			continue
		case w.next == nil && v.passDamage(w.err):
			w = readWindow(v.t, v.keys)
			continue
		case w.next == nil && v.state == nil && errors.Is(w.err, io.EOF):
			return errEmpty
		case w.next == nil:
			v.close(w.err)
			return nil
		}
		if err = v.boundary(w.next); err != nil || v.report.Difference != nil {
			return err
		}
		w = readWindow(v.t, v.keys)
	}
}

// boundary goes beyond a record that is no entry.
func (v *verifier) boundary(rec *history.Record) error {
	switch rec.Kind {
	case history.KindState:
		return v.begin(rec)
	case history.KindEnd:
		if v.state == nil && !v.hole.Adrift() {
			return errEmpty
		}
		v.ends(rec)
	default:
		v.differ(Difference{Kind: Damaged, Entry: v.index(), What: fmt.Sprintf("byte %d: %s stands where an entry should",
			rec.At, kindName(rec.Kind))})
	}
	return nil
}

// ends compares what the file says of its end.
func (v *verifier) ends(rec *history.Record) {
	v.missed(v.hole.Ends(v.index(), v.state != nil, rec.Number), rec.Number)
	if v.hole.Adrift() {
		return
	}
	at := place{v.state.Index(), v.chain}
	if v.passing != nil {
		at = *v.passing
	}
	if rec.Number != at.entry || hex.EncodeToString(rec.Contents) != hex.EncodeToString(at.chain[:]) {
		v.differ(Difference{Kind: History, Entry: at.entry, What: fmt.Sprintf(
			"these entries end with %d and lead to the history %s; by the file's own end they are %d and lead to %.16x: "+
				"it was changed behind entry %d", at.entry, short(at.chain[:]), rec.Number, rec.Contents, v.agreed.Entry)})
	}
}

func kindName(k history.Kind) string { return fmt.Sprintf("a record %q", string(rune(k))) }

// close ends at what the stream returned.
func (v *verifier) close(err error) {
	if !errors.Is(err, io.EOF) {
		v.differ(Difference{Kind: Damaged, Entry: v.index(), What: fmt.Sprintf("what follows it cannot be read: %v%s", err, v.behind())})
	}
	v.closeDamage()
	v.report.Notes = append(v.report.Notes, v.t.Notes...)
}

func (v *verifier) index() uint64 {
	if v.state == nil {
		return 0
	}
	return v.state.Index()
}

// differ notes a difference, if it is the first.
func (v *verifier) differ(d Difference) {
	if first := v.report.Difference; first == nil || d.Entry < first.Entry {
		v.report.Difference = &d
	}
}

// noteKeys takes the members' keys, if they have changed.
func (v *verifier) noteKeys() {
	at := v.state.RosterChanged()
	if at == v.roster {
		return
	}
	v.roster = at
	v.keys = keyring{v.state.Federation(), map[string]signature.Key{}}
	for _, m := range v.state.Roster().Members {
		v.keys.of[m.Site] = m.Key
		v.noteKey(m.Site, m.Key)
	}
}

// apply has the state execute the entries of a window.
func (v *verifier) apply(w *window) error {
	for i := range w.entries {
		e := &w.entries[i]
		if err := v.step(e); err != nil {
			return err
		}
		if v.report.Difference != nil {
			return nil
		}
		*e = entry{} // what was executed is not kept
	}
	if v.Progress != nil {
		v.Progress(w.done)
	}
	return nil
}

// step goes beyond an entry.
func (v *verifier) step(e *entry) error {
	switch follows, from := v.hole.Follows(v.index(), v.state != nil, e.number); {
	case !follows:
		v.missed(from, e.number-1)
	case v.passing != nil:
		v.pass(e)
	case e.number != v.state.Index()+1:
		v.missing(v.state.Index(), e.number)
	default:
		return v.execute(e)
	}
	return nil
}

// execute applies an entry and compares.
func (v *verifier) execute(e *entry) error {
	batch, err := v.state.Ordered(e.batch, e.unread)
	var results []command.Result
	if err == nil {
		results, err = v.state.Apply(batch)
	}
	switch {
	case errors.Is(err, fsm.ErrNewVersion), errors.Is(err, command.ErrVersion):
		return fmt.Errorf("entry %d: %w", e.number, err)
	case err != nil:
		v.differ(Difference{Kind: Entries, Entry: e.number, What: err.Error()})
		return nil //nolint:nilerr // it is what was found
	}
	v.chain = v.chain.Next(e.sum)
	v.report.Entries++
	v.report.Bundles += uint64(len(batch.Bundles))
	v.report.Commands += uint64(len(batch.Commands))
	for i := range results {
		v.count(&batch.Commands[i], results[i].Code)
	}
	v.noteKeys()
	v.compare(false)
	return nil
}

// count notes what became of a command.
func (v *verifier) count(c *command.Command, code command.Code) {
	if lost, ok := c.Body.(*command.SiteLost); ok && code == command.OK {
		v.report.Lost[lost.Site]++
	}
	if code == command.OK {
		return
	}
	v.report.Refused[code.String()]++
	if code == command.NotSigned || code == command.NotMember {
		v.report.Unsigned++
		if v.suspect == 0 {
			v.suspect, v.suspects = v.state.Index(), c.ID.Site
		}
	}
}
