package local

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/executor/attempts"
)

// lift is written instead of bounds to have none.
const lift = "rbps=max wbps=max riops=max wiops=max"

// bandwidth is what the site bounds of disks, and how far it can.
type bandwidth struct {
	most    attempts.Bandwidth
	has     bool     // groups in kill can be bounded (io.max)
	why     string   // has is false
	disks   []string // numbers of those that are bounded
	unbound []string // why others are not
	// direct is why only writes past the page cache are bounded, "" = all are: the kernel tells whose a page is by its
	// group of memory.
	direct string
}

// isBounding reports whether sandboxes get bounds.
func (b *bandwidth) isBounding() bool {
	return b.has && b.most != attempts.Bandwidth{} && len(b.disks) > 0
}

// findDisks finds the disks that tasks in sandboxes reach: of their folders, shares and programs.
func (b *bandwidth) findDisks(cfg Config) {
	if b.most = cfg.IO; b.most == (attempts.Bandwidth{}) {
		return
	}
	paths := slices.Concat([]string{cfg.Dir}, cfg.Sandbox.Share, []string{"/", "/usr"})
	b.disks, b.unbound = attempts.FindDisks(slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return errors.Is(err, os.ErrNotExist)
	})...)
}

// siteWeight of all tasks beside 100 of the broker's own group: where the kernel shares disks by weight, the broker's
// journal goes first.
const siteWeight = "10"

// weigh sets it where a disk's scheduler knows it: not every kernel has the files.
func weigh(base string) {
	_ = writeFile(base, "io.weight", siteWeight)
	_ = writeFile(base, "io.bfq.weight", siteWeight)
}

// argument tells a supervisor its disks.
func (b *bandwidth) argument() []string {
	if !b.isBounding() {
		return nil
	}
	return []string{"-io", strings.Join(b.disks, ",") + " " + b.most.String()}
}

// status says what of the site's bound holds, "" = it has none.
func (b *bandwidth) status() string {
	switch {
	case b.most == (attempts.Bandwidth{}):
		return ""
	case !b.has:
		return "; sandbox.io is not enforced: " + b.why
	}
	s := fmt.Sprintf("; a task in a sandbox has %s of disks %s (io.max)", b.most, strings.Join(b.disks, ", "))
	switch {
	case len(b.disks) == 0:
		s = "; sandbox.io is not enforced"
	case b.direct != "" && (b.most.WriteBytes > 0 || b.most.Writes > 0):
		s += ", but writes as it likes through the page cache: " + b.direct
	}
	if len(b.unbound) > 0 {
		s += "; not bounded: " + strings.Join(b.unbound, ", ")
	}
	return s
}

// ioMax is a group's bound of disks.
type ioMax struct {
	disks []string
	most  string
	freed bool // it was lifted since
}

// parseIO reads what argument wrote.
func parseIO(text string) (m ioMax) {
	disks, most, ok := strings.Cut(text, " ")
	if ok {
		m.disks, m.most = strings.Split(disks, ","), most
	}
	return m
}

// boundIO bounds what is in the group at dir.
func (g *group) boundIO(dir string) error {
	for _, disk := range g.io.disks {
		if err := writeFile(dir, "io.max", disk+" "+g.io.most); err != nil {
			return fmt.Errorf("bound the bandwidth of disk %s to %s: %w", disk, g.io.most, err)
		}
	}
	g.io.freed = false
	return nil
}

// freeIO lifts the bound until the next attempt: whoever waits for a disk that is held back takes no signal, not even
// KILL, and a gigabyte to sync at 1 MiB/s would outlive every fence.
func (g *group) freeIO() {
	if g.kill == "" || len(g.io.disks) == 0 {
		return
	}
	g.io.freed = true
	for _, disk := range g.io.disks {
		_ = writeFile(g.kill, "io.max", disk+" "+lift) // a disk that has gone holds nobody back
	}
}

// probe hands the io controller down to base, from the group above it, or says why not. noMemory is why base has no
// controller of memory, nil = it has one.
func (b *bandwidth) probe(parent, base string, noMemory error) {
	if err := enable("io", parent, base); err != nil {
		b.why = err.Error()
		return
	}
	b.has, b.direct = true, ""
	if noMemory != nil {
		b.direct = noMemory.Error()
	}
	weigh(base)
}
