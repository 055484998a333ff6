package membership

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// table is what gossip has told: one record a site, and the sites whose news
// has not been read. It knows no network; memberlist calls it with its own
// lock held, so nothing here calls memberlist.
type table struct {
	now  func() time.Time
	self string

	mu    sync.Mutex
	sites map[string]*record // Invariant: at most MaxMembers.
	fresh []string           // sites with unread news, oldest first. Invariant: no site twice.
	poke  chan struct{}      // capacity 1: fresh may have changed
}

type record struct {
	site    string
	addr    netip.AddrPort // where memberlist sends
	meta    meta
	there   bool // memberlist has not given it up
	suspect bool // Invariant: only while there.
	rival   *claim

	state   State // as shown
	since   time.Time
	version uint64 // grows with each change
}

// claim is another address under a name that is taken.
type claim struct {
	addr netip.AddrPort
	meta meta
	at   time.Time
}

func newTable(self string, now func() time.Time) *table {
	return &table{now: now, self: self, sites: map[string]*record{}, poke: make(chan struct{}, 1)}
}

// admit makes room for a site that is not known yet: the one gone for longest
// is forgotten; if all are there, the new one is refused.
func (t *table) admit(site string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sites[site] != nil || len(t.sites) < MaxMembers {
		return nil
	}
	var oldest *record
	for _, r := range t.sites {
		if !r.there && (oldest == nil || r.since.Before(oldest.since)) {
			oldest = r
		}
	}
	if oldest == nil {
		return fmt.Errorf("%w: there are %d members already", ErrRefused, MaxMembers)
	}
	t.forget(oldest.site)
	return nil
}

// forget drops a site. REQUIRES: t.mu held.
func (t *table) forget(site string) {
	delete(t.sites, site)
	t.fresh = slices.DeleteFunc(t.fresh, func(s string) bool { return s == site })
}

// present records that memberlist has the site at addr, alive.
func (t *table) present(site string, addr netip.AddrPort, m meta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.sites[site]
	if r == nil {
		r = &record{site: site, since: t.now()}
		t.sites[site] = r
	}
	if r.rival != nil && r.rival.addr == addr {
		r.rival = nil
	}
	r.addr, r.meta, r.there, r.suspect = addr, m, true, false
	t.changed(r)
}

// gone records that memberlist has given the site up.
func (t *table) gone(site string) {
	t.update(site, func(r *record) bool {
		was := r.there
		r.there, r.suspect = false, false
		return was
	})
}

// suspected records that our probe of the site failed.
func (t *table) suspected(site string) {
	t.update(site, func(r *record) bool {
		was := r.suspect
		r.suspect = r.there && site != t.self
		return r.suspect != was
	})
}

// heard records that the site at addr answered, or spoke up for itself.
func (t *table) heard(site string, addr netip.AddrPort) {
	t.update(site, func(r *record) bool {
		if !r.suspect || r.addr != addr {
			return false
		}
		r.suspect = false
		return true
	})
}

// contested records that another address claims the site. It reports whether
// that is new.
func (t *table) contested(site string, addr netip.AddrPort, m meta) bool {
	news := false
	t.update(site, func(r *record) bool {
		news = r.rival == nil || r.rival.addr != addr
		change := news || r.rival.meta != m
		r.rival = &claim{addr: addr, meta: m, at: t.now()}
		return change
	})
	return news
}

// expire drops claims that were not repeated for ttl.
func (t *table) expire(ttl time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.sites {
		if r.rival != nil && t.now().Sub(r.rival.at) > ttl {
			r.rival = nil
			t.changed(r)
		}
	}
}

func (t *table) update(site string, f func(*record) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.sites[site]; r != nil && f(r) {
		t.changed(r)
	}
}

// changed queues the record's news. REQUIRES: t.mu held.
func (t *table) changed(r *record) {
	if s := r.view().State; s != r.state {
		r.state, r.since = s, t.now()
	}
	r.version++
	if !slices.Contains(t.fresh, r.site) {
		t.fresh = append(t.fresh, r.site)
	}
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// view returns the record as others see it.
func (r *record) view() Member {
	m := Member{Site: r.site, Incarnation: r.meta.incarnation, Meta: r.meta.Meta, Addr: r.addr, Since: r.since}
	switch {
	case r.meta.leaving:
		m.State = Left
	case !r.there:
		m.State = Dead
	case r.suspect:
		m.State = Suspect
	default:
		m.State = Alive
	}
	if r.rival == nil {
		return m
	}
	m.Rival = r.rival.addr
	if won := r.rival.meta; won.incarnation > m.Incarnation {
		m.Incarnation, m.Meta, m.State = won.incarnation, won.Meta, Alive
		m.Addr, m.Rival = m.Rival, m.Addr
		if won.leaving {
			m.State = Left
		}
	}
	return m
}

// members returns all sites in the order of their names.
func (t *table) members() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Member, 0, len(t.sites))
	for _, r := range t.sites {
		all = append(all, r.view())
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Site, b.Site) })
	return all
}

// member returns one site.
func (t *table) member(site string) (m Member, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.sites[site]
	if r == nil {
		return Member{}, false
	}
	return r.view(), true
}

// next returns the oldest unread news, as it stands now, and its version.
func (t *table) next() (m Member, version uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.fresh) == 0 {
		return Member{}, 0, false
	}
	r := t.sites[t.fresh[0]]
	return r.view(), r.version, true
}

// read takes the news off the queue, unless there is newer news of the site.
func (t *table) read(site string, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.sites[site]; r != nil && r.version == version {
		t.fresh = slices.DeleteFunc(t.fresh, func(s string) bool { return s == site })
	}
}

// sees reports whether the site at addr is there, this one included.
func (t *table) sees(addr netip.AddrPort) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.sites {
		if r.there && r.addr == addr {
			return true
		}
	}
	return false
}

// lost returns the last addresses of the sites that went without leaving.
func (t *table) lost() []netip.AddrPort {
	t.mu.Lock()
	defer t.mu.Unlock()
	var addrs []netip.AddrPort
	for _, r := range t.sites {
		if !r.there && !r.meta.leaving {
			addrs = append(addrs, r.addr)
		}
	}
	return addrs
}

// alone reports whether no other site is there.
func (t *table) alone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.sites {
		if r.there && r.site != t.self {
			return false
		}
	}
	return true
}
