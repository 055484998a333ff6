package command

import "fmt"

// Offer replaces the site's current offer if Version is greater.
type Offer struct {
	Version  uint64
	Machines []Machine // sorted by name
	Capacity Resources // the whole site, for people to read
	Home     Resources // in use by tasks started outside the log
}

// Machine is what a site exposes of one of its machines: a total, from which the state subtracts what
// it has assigned there.
type Machine struct {
	Name string
	Resources
	// Whole is what the machine would expose if nothing ran outside the log. A task that fits Whole
	// can run here some day, and is worth waiting or reserving for. A part of Whole that is below
	// Resources counts as equal to it.
	Whole Resources
	Runs  Runs // which kinds of tasks, whatever their size
	// Slots is how many tasks the federation may run here at once, 0 = as many as fit.
	Slots  int64
	Labels Labels
}

// Runs says which tasks a machine runs. A task names a container image or is a bare command; a machine
// of the wrong kind never gets it.
type Runs uint8

// What machines can run; RunsCommands is the default.
const (
	RunsCommands Runs = iota // bare commands only
	RunsImages               // container images only, such as a cluster
	RunsBoth
)

// Takes reports whether a task may run here; image says whether the task names one.
func (r Runs) Takes(image bool) bool { return r == RunsBoth || (r == RunsImages) == image }

// String names what the machine runs, for people to read.
func (r Runs) String() string {
	switch r {
	case RunsCommands:
		return "commands"
	case RunsImages:
		return "images"
	case RunsBoth:
		return "commands and images"
	}
	return fmt.Sprintf("Runs(%d)", uint8(r))
}

// Validate checks the bounds, the order of the machines, and that their total is within the bounds of
// one site.
func (b *Offer) Validate() error {
	if err := within("machines", int64(len(b.Machines)), 0, MaxMachines); err != nil {
		return err
	}
	if err := b.checkLabels(); err != nil {
		return err
	}
	var sum Resources // at most MaxMachines·1e9: no overflow
	for i := range b.Machines {
		m := &b.Machines[i]
		if err := firstError(
			CheckMachineName(m.Name),
			CheckResources("machine's ", m.Resources), CheckResources("whole machine's ", m.Whole),
			within("runs", int64(m.Runs), 0, int64(RunsBoth)), within("slots", m.Slots, 0, MaxSlots),
		); err != nil {
			return err
		}
		if i > 0 && b.Machines[i-1].Name >= m.Name {
			return fmt.Errorf("%w: machines %.64q, %.64q are not sorted and unique",
				ErrOutOfBounds, b.Machines[i-1].Name, m.Name)
		}
		sum.MilliCPU += m.MilliCPU
		sum.MemMiB += m.MemMiB
		sum.GPU += m.GPU
	}
	return firstError(CheckResources("all machines' ", sum),
		CheckResources("capacity's ", b.Capacity), CheckResources("home's ", b.Home))
}

// checkLabels checks each different set of labels once, and that there are not too many of them.
func (b *Offer) checkLabels() error {
	var sets map[Labels]bool
	for i := range b.Machines {
		l := b.Machines[i].Labels
		if l == "" || sets[l] {
			continue
		}
		if err := l.Validate(); err != nil {
			return fmt.Errorf("machine %.64q: %w", b.Machines[i].Name, err)
		}
		if sets == nil {
			sets = map[Labels]bool{}
		}
		sets[l] = true
	}
	return within("different labels of machines", int64(len(sets)), 0, MaxLabelSets)
}
