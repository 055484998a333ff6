package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// Report is what a person wants to know of a tree.
type Report struct {
	Path       string         `json:"path"`
	Federation string         `json:"federation"`
	Epoch      uint64         `json:"epoch"`
	Lineage    string         `json:"lineage"`
	Lead       LeadReport     `json:"leader"`
	Members    []MemberReport `json:"members"`
	Snapshot   SnapshotReport `json:"snapshot"`
	Log        LogReport      `json:"log"`
	Entries    []EntryReport  `json:"entries"`
	Znodes     int            `json:"znodes"`
	Faults     []string       `json:"faults"` // what is not as it must be, by path
}

// LeadReport is who leads.
type LeadReport struct {
	Site string `json:"site"` // the last one that took the leadership
	Peer string `json:"peer"`
	Term uint64 `json:"term"`
	Held bool   `json:"held"` // its session lives
	// Moved is the id of the export that has sealed the tree, or "".
	Moved string `json:"moved,omitempty"`
}

// MemberReport is one site of the group.
type MemberReport struct {
	Site      string `json:"site"`
	Node      string `json:"node"`
	Voter     bool   `json:"voter"`
	Connected bool   `json:"connected"`
}

// SnapshotReport is the newest snapshot.
type SnapshotReport struct {
	Entry  uint64 `json:"entry"`
	Chunks int    `json:"chunks"`
	Bytes  int64  `json:"bytes"`
}

// LogReport is what is kept of the log.
type LogReport struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Parts int    `json:"parts"`
}

// EntryReport is one entry.
type EntryReport struct {
	Number   uint64    `json:"number"`
	Ordered  time.Time `json:"ordered"` // by the leader's clock
	Term     uint64    `json:"term"`
	By       string    `json:"by"`         // the site that has signed it
	Elapsed  int64     `json:"elapsed_ms"` // of the term
	Bytes    int       `json:"bytes"`
	Commands []string  `json:"commands"` // site and kind
}

// maxShown bounds the entries of a report.
const maxShown = 1000

// Inspect reads a tree, changes nothing, and takes no part in it; newest is how
// many of the newest entries to show. Faults do not end it: they are in the report.
func Inspect(ctx context.Context, p Place, newest int, log zerolog.Logger) (*Report, error) {
	if err := p.checkAccess(); err != nil {
		return nil, fmt.Errorf("inspect %s: %w", p, err)
	}
	c, err := connect(p, nil, log)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", p, err)
	}
	defer c.close()
	i := inspection{c: c, r: Report{Path: c.root}}
	if err = c.unreachable(p, i.all(ctx, min(newest, maxShown))); err != nil {
		return nil, fmt.Errorf("inspect %s: %w", p, err)
	}
	return &i.r, nil
}

// inspection fills a report.
type inspection struct {
	c *client
	r Report
}

func (i *inspection) fault(format string, a ...any) {
	i.r.Faults = append(i.r.Faults, fmt.Sprintf(format, a...))
}

func (i *inspection) all(ctx context.Context, newest int) error {
	n, err := i.c.get(ctx, tree.FederationPath)
	if err != nil {
		return err
	}
	if !n.found {
		return fmt.Errorf("%w: %s%s does not exist: check the chroot", ErrNoTree, i.c.root, tree.FederationPath)
	}
	ch, err := tree.ParseCharter(i.c.root+tree.FederationPath, n.data)
	if err != nil {
		return err
	}
	i.r.Federation, i.r.Epoch, i.r.Lineage, i.r.Znodes = ch.Federation, ch.Epoch, ch.Lineage, 1
	for _, path := range []string{
		tree.FederationPath, tree.LeadPath, tree.LogPath, tree.SnapshotPath,
		tree.MembersPath,
	} {
		if err := i.c.checkACL(ctx, path); err != nil {
			i.fault("%v", err)
		}
	}
	for _, step := range []func(context.Context) error{i.lead, i.members, i.snapshot} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return i.log(ctx, newest)
}

// read parses a znode; a fault of it goes into the report.
func (i *inspection) read(ctx context.Context, path string, into any) error {
	n, err := i.c.get(ctx, path)
	switch {
	case err != nil:
		return err
	case !n.found:
		i.fault("%s%s is missing", i.c.root, path)
		return nil
	}
	i.r.Znodes++
	if err := tree.Parse(i.c.root+path, n.data, into); err != nil {
		i.fault("%v", err)
	}
	return nil
}

// names lists a znode.
func (i *inspection) names(ctx context.Context, path string) ([]string, error) {
	n, err := i.c.children(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case !n.found:
		i.fault("%s%s is missing", i.c.root, path)
	}
	i.r.Znodes += 1 + len(n.children)
	slices.Sort(n.children)
	return n.children, nil
}

func (i *inspection) lead(ctx context.Context) error {
	var l tree.LeadRecord
	if err := i.read(ctx, tree.LeadPath, &l); err != nil {
		return err
	}
	holder, err := i.c.get(ctx, tree.LeaderPath)
	i.r.Lead = LeadReport{Site: l.Site, Peer: l.Peer, Term: l.Term, Held: holder.found &&
		string(holder.data) == l.Nonce, Moved: l.Moved}
	return err
}

func (i *inspection) members(ctx context.Context) error {
	var lists [3][]string
	for k, path := range []string{tree.MembersPath, tree.VotersPath, tree.PresentPath} {
		var err error
		if lists[k], err = i.names(ctx, path); err != nil {
			return err
		}
	}
	for _, s := range lists[0] {
		n, err := i.c.get(ctx, tree.MembersPath+"/"+s)
		if err != nil {
			return err
		}
		if !n.found { // it has left since
			i.r.Znodes--
			continue
		}
		var e tree.MemberRecord
		if err := tree.Parse(i.c.root+tree.MembersPath+"/"+s, n.data, &e); err != nil {
			i.fault("%v", err)
		}
		i.r.Members = append(i.r.Members, MemberReport{
			Site: s, Node: e.Node, Voter: slices.Contains(lists[1], s), Connected: slices.Contains(lists[2], s),
		})
	}
	return nil
}

// snapshot looks at the newest one, and at a newer one if that took its place: then
// what was missing of the former is none of the tree's faults.
func (i *inspection) snapshot(ctx context.Context) error {
	var p tree.Pointer
	if err := i.read(ctx, tree.SnapshotPath, &p); err != nil {
		return err
	}
	if _, err := i.names(ctx, tree.SnapshotsPath); err != nil {
		return err
	}
	for {
		faults, err := i.chunks(ctx, p)
		if err != nil {
			return err
		}
		now, err := i.pointer(ctx)
		if err != nil {
			return err
		}
		if now.Entry == p.Entry && now.Term == p.Term {
			i.r.Snapshot = SnapshotReport{Entry: p.Entry, Chunks: len(p.Sums), Bytes: p.Bytes}
			i.r.Faults = append(i.r.Faults, faults...)
			return nil
		}
		p = now
	}
}

// pointer reads which snapshot is the newest now; what is wrong with it is told once,
// by snapshot.
func (i *inspection) pointer(ctx context.Context) (p tree.Pointer, err error) {
	n, err := i.c.get(ctx, tree.SnapshotPath)
	if err == nil && tree.Parse("", n.data, &p) != nil {
		p = tree.Pointer{}
	}
	return p, err
}

// chunks says what is wrong with those of a snapshot.
func (i *inspection) chunks(ctx context.Context, p tree.Pointer) (faults []string, err error) {
	for k, sum := range p.Sums {
		n, err := i.c.get(ctx, p.Chunk(k))
		switch {
		case err != nil:
			return nil, err
		case !n.found:
			faults = append(faults, fmt.Sprintf("%s%s is missing", i.c.root, p.Chunk(k)))
		case !bytes.Equal(tree.SumOf(n.data), sum):
			faults = append(faults, fmt.Sprintf("%s%s is damaged: its checksum does not fit", i.c.root, p.Chunk(k)))
		}
	}
	return faults, nil
}

func (i *inspection) log(ctx context.Context, newest int) error {
	parts, err := i.names(ctx, tree.PartsPath)
	if err != nil {
		return err
	}
	names, err := i.names(ctx, tree.LogPath)
	if err != nil {
		return err
	}
	i.r.Log.Parts = len(parts)
	var numbers []uint64
	for _, name := range names {
		n, odd := tree.ParseNumber(name)
		if odd != nil {
			i.fault("%s%s/%s: %v", i.c.root, tree.LogPath, name, odd)
			continue
		}
		if k := len(numbers); k > 0 && n != numbers[k-1]+1 {
			i.fault("%s%s is missing", i.c.root, tree.EntryPath(numbers[k-1]+1))
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 0 {
		i.fault("%s%s is empty: its last entry must always be there", i.c.root, tree.LogPath)
		return nil
	}
	i.r.Log.First, i.r.Log.Last = numbers[0], numbers[len(numbers)-1]
	// Read after the list: what was trimmed by then is in this snapshot or before it.
	p, err := i.pointer(ctx)
	if err != nil {
		return err
	}
	if numbers[0] > p.Entry+1 {
		i.fault("%s%s is missing", i.c.root, tree.EntryPath(p.Entry+1))
	}
	for _, n := range numbers[max(0, len(numbers)-newest):] {
		if err := i.entry(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// entry describes one; the log may be trimmed meanwhile.
func (i *inspection) entry(ctx context.Context, n uint64) error {
	z, err := i.c.get(ctx, tree.EntryPath(n))
	if err != nil || !z.found || len(z.data) == 0 { // the origin is empty
		return err
	}
	e, err := i.c.readEntry(ctx, n, z.data)
	if errors.Is(err, errGone) {
		// Trimmed meanwhile? An entry's parts go before it.
		if p, cause := i.pointer(ctx); cause != nil || p.Entry >= n {
			return cause
		}
	}
	if err != nil && transient(err) {
		return err
	}
	var b *command.Batch
	if err == nil {
		b, err = command.DecodeBatch(e.Batch)
	}
	var h relay.Header
	if err == nil {
		err = relay.ParseHeader(e.Header, &h)
	}
	if err != nil {
		i.fault("%s%s: %v", i.c.root, tree.EntryPath(n), err)
		return nil
	}
	shown := EntryReport{
		Number: n, Ordered: e.At.UTC(), Term: b.Term, By: e.Site, Elapsed: b.Elapsed, Bytes: len(z.data),
		Commands: []string{},
	}
	for k := range b.Commands {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", b.Commands[k].Body), "*command.")
		shown.Commands = append(shown.Commands, b.Commands[k].ID.Site+" "+kind)
	}
	i.r.Entries = append(i.r.Entries, shown)
	return nil
}
