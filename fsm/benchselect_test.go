package fsm

import (
	"fmt"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// BenchmarkSelectors ends running tasks while requirements wait that the machine has room for: each end frees a
// core, on which the same entry starts the next task. One op is one completion and one assignment. It compares
// jobs without requirements, as many different requirements without selectors (GPUs that do not exist), and as
// many whose selectors the machines' labels do not satisfy.
func BenchmarkSelectors(b *testing.B) {
	for _, c := range []struct {
		name string
		want func(j *command.JobSpec, i int)
	}{
		{"none", nil},
		{"sizes=1000", func(j *command.JobSpec, i int) { j.Need.GPU = int64(1 + i) }},
		{"selectors=1000", func(j *command.JobSpec, i int) {
			j.Selectors = []string{"!old", "arch=amd64", fmt.Sprintf("gpu=model-%d", i), "zone in (a,b)"}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := newSelecting(b, c.want)
			x.inBatches(b, func(b *testing.B, at, batch int) int {
				cmds := x.completions(at, batch)
				x.base++
				x.timed(b, cmds...)
				return batch
			})
		})
	}
}

// newSelecting returns a crowd of ten sites with 100 such requirements each.
func newSelecting(b *testing.B, want func(*command.JobSpec, int)) *crowd {
	const sites, each = 10, 100
	c := newCrowd(b, sites, 10_000, true)
	for i := range sites * each {
		if want != nil {
			site := c.s.sites[i%sites].name
			j := c.job(site, 1)
			want(&j, i)
			c.submit(site, j)
			c.waiting++
		}
	}
	c.more(running)
	for _, x := range c.s.sites {
		o := c.offering(x.name, (running+sites-1)/sites)
		o.Machines[0].Labels = "arch=amd64,disk=ssd,gpu=model-none,handler=local,os=linux,rack=r7,zone=a"
		c.must(x.name, o)
	}
	c.waiting -= running
	return c
}
