package statecmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
)

// showReport writes what going through a history has found, for people.
func showReport(w io.Writer, r *replay.Report) {
	showVerdict(w, r)
	cli.Row(w, "federation", r.Federation+", kept by "+r.KeptBy)
	cli.Row(w, "entries", fmt.Sprintf("%d, from %d to %d", r.Entries, r.Begin.Entry+1, r.End.Entry))
	for _, g := range r.Gaps {
		cli.Row(w, "gap", gap(&g))
	}
	for _, d := range r.Damaged {
		cli.Row(w, "damaged", damage(&d))
	}
	cli.Row(w, "bundles", fmt.Sprintf("%d, with %s; not their sites' word, and refused: %d",
		r.Bundles, cli.Plural(int64(r.Commands), "command"), r.Unsigned))
	cli.Row(w, "decisions", cli.Plural(int64(r.Decisions), "assignment")+", made again")
	cli.Row(w, "refused", counted(r.Refused))
	cli.Row(w, "declared lost", counted(r.Lost))
	cli.Row(w, "beginning", point(&r.Begin))
	cli.Row(w, "last signed", point(&r.Signed))
	if r.Backed.Entry != r.Signed.Entry {
		cli.Row(w, "by most", point(&r.Backed))
	}
	cli.Row(w, "end", fmt.Sprintf("entry %d, state %.16s", r.End.Entry, r.End.State))
	if signed := lastKnown(r); r.End.Entry > signed {
		cli.Row(w, "not signed yet", fmt.Sprintf("the order of the last %d entries, and the time in them", r.End.Entry-signed))
	}
	cli.Row(w, "statements", fmt.Sprintf("%d agree, %d are of entries that are not here", r.Statements, r.Elsewhere))
	for _, n := range r.Notes {
		cli.Row(w, "note", n)
	}
	showKeys(w, r)
	showAccounts(w, r)
	fmt.Fprintln(w, "\nNot proven by this:")
	for _, text := range r.Unproven {
		fmt.Fprintln(w, "- "+text)
	}
}

// showVerdict says first what matters most.
func showVerdict(w io.Writer, r *replay.Report) {
	for i := range r.Dissent {
		cli.Row(w, "DISSENT", &r.Dissent[i])
	}
	switch {
	case r.Difference != nil:
		cli.Row(w, "DIFFERS", r.Difference)
		fmt.Fprintln(w, "\nUp to there:")
	case len(r.Dissent) > 0:
		cli.Row(w, "else", "nothing differs from what others have signed")
	case r.Verdict == replay.NotProven:
		cli.Row(w, "NOT BACKED", notBacked(r))
	default:
		cli.Row(w, "all agrees", "nothing differs from what was signed")
	}
}

// notBacked words what is missing where nothing differs, and what to do.
func notBacked(r *replay.Report) string {
	const later = "sites sign every 40 s; export again in some minutes"
	if r.Cut {
		return fmt.Sprintf("nothing differs up to entry %d, but some behind it are damaged, and no state stands behind those", r.End.Entry)
	}
	entry, _ := r.FilesWord()
	if entry == 0 && len(r.Gaps) == 0 {
		return "nothing differs, but no site has signed yet in which order these entries stand: " + later
	}
	return fmt.Sprintf("nothing differs, but the ledger behind entry %d is the file's word: nobody whose key is known has "+
		"signed it; %s", entry, later)
}

// gap words what is missing.
func gap(g *replay.Gap) string {
	if g.Damaged {
		return fmt.Sprintf("the entries behind %d up to %d are damaged, or no state leads to them; %s", g.Behind, g.To, backed(g))
	}
	return fmt.Sprintf("of the entries behind %d up to %d nothing was kept but the state; %s", g.Behind, g.To, backed(g))
}

// damage words a stretch that cannot be read, and what that costs.
func damage(d *replay.Damage) string {
	cost := "no entry is known to be missing"
	if d.First != 0 {
		cost = "missing: " + history.Range(d.First, d.Last)
	}
	return fmt.Sprintf("%s: bytes %d to %d; %s", d.File, d.From, d.To-1, cost)
}

// backed words who stands for the state behind a gap.
func backed(g *replay.Gap) string {
	if len(g.SignedBy) == 0 {
		return fmt.Sprintf("the ledger behind entry %d is the file's word", g.To)
	}
	return "what follows from it was signed by " + strings.Join(g.SignedBy, " ")
}

// lastKnown returns the last entry up to which nothing is missing in what was signed: from there on order is not.
func lastKnown(r *replay.Report) uint64 {
	last := max(r.Signed.Entry, r.Begin.Entry)
	if n := len(r.Gaps); n > 0 {
		last = max(last, r.Gaps[n-1].To)
	}
	return last
}

// point words who has signed a moment.
func point(p *replay.Point) string {
	switch {
	case p.Chain == "":
		return "none"
	case p.Entry == 0 && len(p.SignedBy) == 0:
		return "entry 0: before the federation was founded, nothing has to be believed"
	case len(p.SignedBy) == 0:
		return fmt.Sprintf("entry %d, state %.16s, signed by nobody: its own word", p.Entry, p.State)
	}
	return fmt.Sprintf("entry %d, state %.16s, signed by %s", p.Entry, p.State, strings.Join(p.SignedBy, " "))
}

func counted(by map[string]uint64) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d × %s", by[what], what))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

func showKeys(w io.Writer, r *replay.Report) {
	fmt.Fprintln(w)
	cli.Row(w, "SITE", "ELECTOR", "KEY", "COMPARED")
	for _, m := range r.Members {
		cli.Row(w, m.Site, cli.YesNo(m.Elector && !m.Banned), m.Key, cli.YesNo(m.Checked))
	}
}

// showAccounts shows the ledger at the beginning and at the end, as `cloudshare ledger` words it.
func showAccounts(w io.Writer, r *replay.Report) {
	p := r.Policy
	in := cli.NewAmounts(wire.Policy{
		Policy: p.Policy, RateCPU: p.RateCPU, RateMem: p.RateMem, RateGPU: p.RateGPU, QuantumMs: p.QuantumMs,
	})
	fmt.Fprintln(w)
	cli.Row(w, "SITE", "CONTRIBUTION", "AT THE END", "UTILITY", "AT THE END", "PRIORITY", "AT THE END")
	for _, x := range r.Ledger {
		b, e := x.Begin, x.End
		cli.Row(w, x.Site, in.Standing(b.Contribution), in.Standing(e.Contribution), in.Standing(b.Utility),
			in.Standing(e.Utility), in.Standing(b.Priority), in.Standing(e.Priority))
	}
}
