package watchdog

import "sync/atomic"

// Clerk touches the disk for a watchdog's loop, in a goroutine of its own: a
// truncation or a write to a disk that has stalled takes as long as the disk likes,
// and the loop must look at the clock meanwhile.
type Clerk struct {
	jobs chan func()
	done chan struct{} // unbuffered: Flush waits for it
	// looking: a look at the output is asked for or under way, so that there is never
	// more than one.
	looking atomic.Bool
	pace    atomic.Int64 // what the last look returned
}

// maxClerkJobs is more than one attempt asks for between two calls of Flush: a record
// and a look.
const maxClerkJobs = 4

// NewClerk starts the goroutine, which lives as long as the process.
func NewClerk() *Clerk {
	c := &Clerk{jobs: make(chan func(), maxClerkJobs), done: make(chan struct{})}
	go func() {
		for job := range c.jobs {
			job()
		}
	}()
	return c
}

// Close ends the goroutine once it has done what it was given.
func (c *Clerk) Close() { close(c.jobs) }

// Do has job done later, in the order of the calls. It waits only if the clerk is far
// behind, which a watchdog that calls Flush between two attempts never sees.
func (c *Clerk) Do(job func()) { c.jobs <- job }

// look has the output looked at as Output.look does, and returns when to ask again.
// While the last look has not ended, nothing is asked for.
func (c *Clerk) look(o *Output, limit, pace int64) int64 {
	if c.looking.Swap(true) {
		return minLook
	}
	if last := c.pace.Swap(0); last != 0 {
		pace = last
	}
	c.Do(func() {
		c.pace.Store(o.look(limit, pace))
		c.looking.Store(false)
	})
	return pace
}

// Flush returns when all that was asked for is done. Until then the output's files
// belong to the clerk. REQUIRES: nothing must be ended in time any more.
func (c *Clerk) Flush() {
	c.Do(func() { c.done <- struct{}{} })
	<-c.done
	c.pace.Store(0)
}
