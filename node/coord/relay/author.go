package relay

import (
	"bytes"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
)

// author signs this member's commands, and verifies those of others. nil: nothing is signed, as where connections are
// plain and the federation has no roster.
type author struct {
	site       string
	federation [16]byte
	id         *Identity
	proofs     *coord.Proofs // what was found right, for the machine
}

func newAuthor(cfg *Config, federation [16]byte) *author {
	if cfg.Mux == nil || cfg.Mux.net.Identity == nil {
		return nil
	}
	return &author{site: cfg.Site, federation: federation, id: cfg.Mux.net.Identity, proofs: cfg.Proofs}
}

// bundle signs encoded commands of this member. What it has signed itself it need not verify.
func (a *author) bundle(encoded []byte, commands int) command.Bundle {
	b := command.SignBundle(a.federation, a.site, commands, encoded, a.id.Sign)
	a.proofs.Add(&b, a.federation, signature.Key(a.id.key.Public()))
	return b
}

// isBy reports whether a bundle is its site's, by the key that this member knows of it now.
func (a *author) isBy(b *command.Bundle) bool {
	key, known := a.id.roster.Key(b.Site)
	return known && a.proofs.Prove(b, a.federation, signature.Key(key))
}

// lead returns the command by which this member introduces itself as the leader of a term.
func (a *author) lead(term uint64) []byte { return command.EncodeLead(a.site, term) }

// bundleSize is about what a bundle takes in an entry beside its commands.
const bundleSize = 66 + 16

// entryWriter puts what is to be ordered together. Neighbouring calls of this member become one bundle.
type entryWriter struct {
	by      *author
	header  Header
	cmds    [][]byte
	bundles []command.Bundle
	own     [][]byte // commands of this member that no bundle has yet
	size    int
}

func (w *entryWriter) add(it *item) {
	w.header.calls = append(w.header.calls, it.calls...)
	w.cmds = append(w.cmds, it.cmds...)
	w.size += it.bytes
	switch {
	case w.by == nil:
	case it.signed == nil:
		w.own = append(w.own, it.cmds...)
	default:
		w.sign()
		w.bundles = append(w.bundles, *it.signed)
	}
}

// sign makes a bundle of this member's commands that are in none yet.
func (w *entryWriter) sign() {
	if len(w.own) > 0 {
		w.bundles = append(w.bundles, w.by.bundle(bytes.Join(w.own, nil), len(w.own)))
		w.own = w.own[:0]
	}
}
