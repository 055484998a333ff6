package simcmd

import (
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/study"
)

// studyFlags are the flags that all commands share which play many instances.
type studyFlags struct {
	study     study.Study
	period    time.Duration
	unit      time.Duration // 0 = the jobs as they are
	scenarios []int
	workers   int
}

// newStudyFlags returns the defaults, with these scenarios.
func newStudyFlags(scenarios ...int) studyFlags {
	return studyFlags{study: *study.DefaultStudy(), period: 24 * time.Hour, unit: time.Hour, scenarios: scenarios}
}

// addTo adds the flags with the values that they have now as defaults.
func (p *studyFlags) addTo(f *pflag.FlagSet) {
	s := &p.study
	f.IntVar(&s.Periods, "periods", s.Periods, "periods of each log")
	cli.DurationVar(f, &p.period, "period", p.period, "length of a period of submissions")
	f.IntVar(&s.Mappings, "mappings", s.Mappings, "mappings of users to sites, of each period")
	f.Float64SliceVar(&s.Loads, "loads", s.Loads, "work of a period over the cores' time in it")
	f.IntSliceVar(&p.scenarios, "scenarios", p.scenarios, "1 equal cores, 2 cores by Zipf's law, 3 background load")
	f.IntVar(&s.Setup.Sites, "sites", s.Setup.Sites, "sites")
	f.IntVar(&p.workers, "workers", 0, "instances at a time, 0 = as many as there are cores")
}

// checkSeeds refuses a number of seeds that is none.
func checkSeeds(n int) error {
	const most = 1000
	if n < 1 || n > most {
		return cli.Usage("--seeds %d: must be 1 to %d", n, most)
	}
	return nil
}

// fillStudy checks the flags by themselves, before any log is read, and puts them into
// the study.
func (p *studyFlags) fillStudy() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"period", p.period}, {"unit", p.unit}} {
		if d.value%time.Second != 0 {
			return cli.Usage("--%s %s: must be whole seconds", d.flag, d.value)
		}
	}
	const most = 4096
	if p.workers < 0 || p.workers > most {
		return cli.Usage("--workers %d: must be 0 or more, at most %d", p.workers, most)
	}
	if p.workers == 0 {
		p.workers = runtime.NumCPU()
	}
	s := &p.study
	s.Setup.Period, s.Setup.Unit, s.Scenarios = int64(p.period/time.Second), int64(p.unit/time.Second), nil
	for _, n := range p.scenarios {
		s.Scenarios = append(s.Scenarios, sim.Scenario(n))
	}
	return nil
}
