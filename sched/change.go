package sched

// Batch is some units.
type Batch struct {
	Units    int64
	Work     Int128 // their lengths together, quanta
	Released Int128 // the sum of their release times, quanta since genesis
}

// Add counts units more tasks' worth: n units of a length, released at r.
func (b *Batch) Add(n, length, r int64) {
	b.Units += n
	b.Work = b.Work.Add(Mul64(n, length))
	b.Released = b.Released.Add(Mul64(n, r))
}

// Sub takes back what Add with the same arguments counted.
func (b *Batch) Sub(n, length, r int64) { b.Add(-n, length, r) }

// Plus adds another batch.
func (b *Batch) Plus(o Batch) {
	b.Units, b.Work, b.Released = b.Units+o.Units, b.Work.Add(o.Work), b.Released.Add(o.Released)
}

// Minus takes another batch away.
func (b *Batch) Minus(o Batch) {
	b.Units, b.Work, b.Released = b.Units-o.Units, b.Work.Sub(o.Work), b.Released.Sub(o.Released)
}

// Change is what one entry does to a site, or to a coalition: then it is the sum
// over its sites.
type Change struct {
	// Cores is how many more it has from now on; below 0 it has fewer.
	Cores int64
	// New is released now; Released is not looked at.
	New Batch
	// Past was released before now, and is only known now: home runs. Their
	// lengths are true.
	Past Batch
	// Gone waited and will not run: cancelled, or its site is away.
	Gone Batch
	// Corrected is Σ units·(true length − the length it had at its release) over
	// what ended.
	Corrected Int128
	// Longer still run though their lengths are over; Work is how long they are
	// thought to go on. Released is not looked at.
	Longer Batch
}

// Plus adds another site's change.
func (c *Change) Plus(o *Change) {
	c.Cores += o.Cores
	c.New.Plus(o.New)
	c.Past.Plus(o.Past)
	c.Gone.Plus(o.Gone)
	c.Corrected = c.Corrected.Add(o.Corrected)
	c.Longer.Plus(o.Longer)
}

// Minus takes another site's change away.
func (c *Change) Minus(o *Change) {
	c.Cores -= o.Cores
	c.New.Minus(o.New)
	c.Past.Minus(o.Past)
	c.Gone.Minus(o.Gone)
	c.Corrected = c.Corrected.Sub(o.Corrected)
	c.Longer.Minus(o.Longer)
}
