//go:build mutate

package relay

import (
	"bytes"
	"crypto/rand"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/internal/mutate"
)

// hostile is what this process, as a hostile leader, knows. Only the goroutine that orders uses it.
var hostile = map[string]*heard{} // by site

// heard is what a site has said last.
type heard struct {
	bundle  command.Bundle
	cmds    [][]byte
	last    command.Command
	running command.AttemptRef
}

// playHostile changes an entry before it is encoded.
func playHostile(s *sequencer, w *entryWriter, e *entryCalls, elapsed *int64) {
	if w.by == nil {
		return
	}
	listen(w)
	for name, f := range map[string]func(victim string) bool{
		"leader-censors":        func(victim string) bool { return censor(s, w, e, victim) },
		"leader-reorders":       func(string) bool { return reorder(w) },
		"leader-misplaces":      func(string) bool { return misplace(w) },
		"leader-forges":         func(victim string) bool { return forgeAll(w, victim) },
		"leader-stretches-time": func(string) bool { *elapsed *= 10; return true },
	} {
		if victim, on := mutate.Hostile(w.by.site, name); on && f(victim) {
			mutate.Did(name)
		}
	}
}

// part is a bundle of an entry with all that belongs to it.
type part struct {
	bundle command.Bundle
	cmds   [][]byte
	calls  []call
}

func partsOf(w *entryWriter) (parts []part) {
	cmds, calls := w.cmds, w.header.calls
	for _, b := range w.bundles {
		p := part{bundle: b, cmds: cmds[:b.Commands]}
		cmds = cmds[b.Commands:]
		for n := 0; n < b.Commands; {
			n += calls[0].commands
			p.calls, calls = append(p.calls, calls[0]), calls[1:]
		}
		parts = append(parts, p)
	}
	return parts
}

// put puts a bundle of nobody's calls at the entry's end.
func (w *entryWriter) put(site string, by signature.Signature, cmds ...[]byte) {
	w.header.calls = append(w.header.calls, call{commands: len(cmds)})
	w.cmds = append(w.cmds, cmds...)
	w.bundles = append(w.bundles, command.Bundle{Site: site, Commands: len(cmds), Signature: by})
}

// listen keeps the newest bundle of each site.
func listen(w *entryWriter) {
	for _, p := range partsOf(w) {
		if p.bundle.Site == w.by.site {
			continue
		}
		h := hostile[p.bundle.Site]
		if h == nil {
			h = &heard{}
			hostile[p.bundle.Site] = h
		}
		h.bundle, h.cmds = p.bundle, nil
		for _, b := range p.cmds {
			h.cmds = append(h.cmds, bytes.Clone(b))
			c, _, err := command.Decode(b)
			if err != nil {
				continue
			}
			if c.ID.Seq > 0 {
				h.last = c
			}
			if started, ok := c.Body.(*command.Started); ok {
				h.running = started.Attempts[0].AttemptRef
			}
		}
	}
}

// censor leaves a site's bundles out, and never answers.
func censor(s *sequencer, w *entryWriter, e *entryCalls, victim string) bool {
	n := len(e.items)
	e.items = slices.DeleteFunc(e.items, func(it item) bool { return it.signed != nil && it.signed.Site == victim })
	if len(e.items) == n {
		return false
	}
	*w = s.fill(w.header.Term, e)
	return true
}

// reorder turns the order of the bundles.
func reorder(w *entryWriter) bool {
	parts := partsOf(w)
	if len(parts) < 2 {
		return false
	}
	slices.Reverse(parts)
	w.bundles, w.cmds, w.header.calls = nil, nil, nil
	for _, p := range parts {
		w.bundles = append(w.bundles, p.bundle)
		w.cmds, w.header.calls = append(w.cmds, p.cmds...), append(w.header.calls, p.calls...)
	}
	return true
}

// misplace puts a command in front that the header does not tell of, so that each call is named where others' commands
// stand.
func misplace(w *entryWriter) bool {
	if len(w.header.calls) == 0 {
		return false
	}
	lead := w.by.lead(w.header.Term)
	w.bundles = slices.Insert(w.bundles, 0, w.by.bundle(lead, 1))
	w.cmds = slices.Insert(w.cmds, 0, lead)
	w.header.calls = append(w.header.calls, call{commands: 1})
	return true
}

// forgeAll has the entry hold what the sites have not said, or have said before.
func forgeAll(w *entryWriter, victim string) (forged bool) {
	for site, h := range hostile {
		if victim != "" && victim != site || h.last.ID.Seq == 0 || len(w.cmds)+20*len(h.cmds) > MaxEntryCommands {
			continue
		}
		forge(w, site, h)
		forged = true
	}
	return forged
}

func forge(w *entryWriter, site string, h *heard) {
	all := bytes.Join(h.cmds, nil)
	flipped := h.bundle.Signature
	flipped[7] ^= 1
	w.put(site, h.bundle.Signature, h.cmds...) // once more
	w.put(site, sign(w.by, all), h.cmds...)
	w.put(site, signature.Signature{}, h.cmds...)
	w.put(site, flipped, h.cmds...)
	w.put(w.by.site, sign(w.by, all), h.cmds...)
	for _, c := range inventions(w.by, site, h) {
		w.put(w.by.site, sign(w.by, c), c)
		w.put(site, sign(w.by, c), c)
		w.put(site, h.bundle.Signature, c) // which is right for other commands
	}
}

func sign(by *author, encoded []byte) signature.Signature {
	return command.Sign(by.federation, encoded, by.id.Sign)
}

// inventions are commands that a site has not said: any would be executed as its next one, the first of them.
func inventions(by *author, site string, h *heard) (out [][]byte) {
	id := h.last.ID
	id.Seq++
	add := func(id command.ID, b command.Body) {
		c := command.Command{ID: id, Ack: h.last.Ack, Body: b}
		if id.Seq == 0 {
			c.Ack = 0
		}
		if c.Validate() == nil {
			out = append(out, command.Append(nil, c))
		}
	}
	if h.running.Token != 0 {
		add(id, &command.Complete{Attempts: []command.Ended{{AttemptRef: h.running, Ran: true, RunMs: 1}}})
		mutate.Did("leader-forges-ends")
	}
	add(id, &command.Leave{})
	for _, other := range hostile {
		if job := other.running.Job; job.Site == site {
			add(id, &command.Cancel{Job: job, Task: -1})
		}
	}
	key, _ := by.id.roster.Key(site)
	register := &command.Register{
		Node: signature.Key(key).Node(), MaxVersion: fsm.Version, After: h.last.ID.Incarnation,
		HTTP: "127.0.0.1:1", Peer: "127.0.0.1:1",
	}
	_, _ = rand.Read(register.Boot[:]) // never fails
	add(command.ID{Site: site}, register)
	return out
}
