package store

import (
	"errors"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node/files"
)

var modelNames = []string{"a", "b", "c"}

// promised sums up what was reserved of a space and has not come.
func (m *model) promised(space Space) (sum int64) {
	for k, size := range m.sizes {
		if k.Space == space && !m.isThere(k) {
			sum += charge(size)
		}
	}
	for by, x := range m.expected {
		if x.space != space {
			continue
		}
		open := x.bytes
		if k, pinned := m.pins[by][space]; pinned && m.came(by, k) {
			open -= charge(sizeOf(slot{key: k}))
		}
		sum += max(open, 0)
	}
	return sum
}

func (m *model) isThere(k key) bool {
	return m.blobs[slot{key: k}] != nil || m.blobs[slot{k, true}] != nil
}

// came reports whether a name pinned a blob when it was there, as who keeps outputs does.
func (m *model) came(by string, k key) bool {
	x := m.Store.expected[by]
	return x != nil && x.came == charge(sizeOf(slot{key: k}))
}

// allPromised is what promises may take of the disk.
func (m *model) allPromised() int64 {
	own := min(m.promised(Own), max(modelMax-m.bytes(Own), 0))
	return own + m.promised(Cache) + m.promised(Outgoing)
}

// mayPromise says whether n bytes more of a space can be promised on a disk with so many free.
func (m *model) mayPromise(space Space, n, free int64) bool {
	idle := int64(0)
	for _, at := range m.idle(Cache) {
		idle += charge(sizeOf(at))
	}
	left := modelMax - m.bytes(space) - m.promised(space)
	if space == Cache {
		left += idle
	}
	all := m.allPromised()
	return n == 0 || n <= left && n <= free+idle-all
}

// evicted has go what promises take of the cache.
func (m *model) evicted(free int64) {
	over := m.allPromised() - free
	for _, at := range m.idle(Cache) {
		if over <= 0 {
			return
		}
		over -= charge(sizeOf(at))
		delete(m.blobs, at)
	}
}

func drawFree(rt *rapid.T) int64 {
	if rapid.Bool().Draw(rt, "watched") {
		return int64(rapid.IntRange(-2, 20).Draw(rt, "free")) * block
	}
	return Unbounded
}

// reserveOne promises room for a blob that a name pins.
func (m *model) reserveOne(rt *rapid.T) {
	at, content, whole := drawRef(rt)
	by, free := rapid.SampledFrom(modelNames).Draw(rt, "by"), drawFree(rt)
	if _, other := m.pins[by][at.Space]; other {
		return
	}
	_, before := m.sizes[whole.key]
	need := int64(0)
	if !m.isThere(whole.key) && !before {
		need = charge(int64(len(content)))
	}
	fits := m.mayPromise(at.Space, need, free)
	b := files.BlobOf([]byte(content))
	err := m.Reserve(by, at, []files.Blob{b, b}, free)
	if !m.asPromised(rt, err, fits) {
		return
	}
	if m.pins[by] == nil {
		m.pins[by] = map[Space]Ref{}
	}
	m.pins[by][at.Space], m.sizes[whole.key] = whole.key, int64(len(content))
	if need > 0 { // what is here already takes nothing, and nothing goes for it
		m.evicted(free)
	}
}

// asPromised checks what came of a promise, and reports whether it was given.
func (m *model) asPromised(rt *rapid.T, err error, fits bool) bool {
	var short *ShortError
	switch {
	case fits && err != nil, !fits && (!errors.As(err, &short) || !errors.Is(err, ErrFull)):
		rt.Fatalf("fits %t: %v", fits, err)
	case err == nil:
		return true
	case !m.Fits(short, Unbounded) && short.Bytes <= modelMax-m.bytes(short.Space)-m.promised(short.Space):
		rt.Fatalf("%v: it does not fit on a disk without an end", err)
	}
	return false
}

// expectOne promises room for bytes of a name.
func (m *model) expectOne(rt *rapid.T) {
	by, free := rapid.SampledFrom(modelNames).Draw(rt, "by"), drawFree(rt)
	space := rapid.SampledFrom([]Space{Own, Outgoing}).Draw(rt, "space")
	n := int64(rapid.IntRange(1, 12).Draw(rt, "blocks")) * block
	_, before := m.expected[by]
	fits := before || m.mayPromise(space, n, free)
	err := m.ReserveBytes(by, space, n, free)
	if m.asPromised(rt, err, fits) && !before {
		m.expected[by] = expectation{space: space, bytes: n}
		m.evicted(free)
	}
}

// keepOne promises room for bytes whether there is any or not.
func (m *model) keepOne(rt *rapid.T) {
	by := rapid.SampledFrom(modelNames).Draw(rt, "by")
	n := int64(rapid.IntRange(1, 12).Draw(rt, "blocks")) * block
	m.KeepBytes(by, Own, n)
	if _, before := m.expected[by]; !before {
		m.expected[by] = expectation{space: Own, bytes: n}
	}
}

// releaseOne ends a promise, perhaps one that there is not.
func (m *model) releaseOne(rt *rapid.T) {
	by := rapid.SampledFrom(modelNames).Draw(rt, "by")
	m.Release(by)
	delete(m.expected, by)
}
