package linear

import (
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// object is what operations compete for: porcupine looks at each by itself.
type object struct {
	name  string
	model porcupine.Model
	ops   []Op
}

// objects sorts a history by what its operations are about. One operation may
// count for two: for the broker that answered, and for the federation.
func objects(history []Op) []object {
	found := map[string]*object{}
	durable := map[string]bool{}
	for _, o := range history {
		durable[o.Job] = durable[o.Job] || o.Kind == Submit && o.Answered && o.Durable
	}
	add := func(name string, m porcupine.Model, o Op) {
		if found[name] == nil {
			found[name] = &object{name: name, model: m}
		}
		found[name].ops = append(found[name].ops, o)
	}
	for _, o := range history {
		if o.isRead() && !o.Answered {
			continue // it says nothing
		}
		switch o.Kind {
		case SetPolicy, GetPolicy:
			addPolicy(add, o)
		case Submit, Cancel, Look:
			addJob(add, o, durable[o.Job])
		}
	}
	var out []object
	for _, name := range slices.Sorted(maps.Keys(found)) {
		ob := *found[name]
		ob.ops = withoutUnseen(withoutRepeats(ob.ops))
		out = append(out, ob)
	}
	return out
}

// adder puts an operation to an object.
type adder func(name string, m porcupine.Model, o Op)

func addPolicy(add adder, o Op) {
	if o.Answered {
		add("policy at "+o.At, viewModel(), o)
	}
	if o.Kind == SetPolicy || o.Current {
		add("policy of the federation", registerModel(), o)
	}
}

// addJob puts an operation to the job as its owner knows it, and as the federation
// does, which may hear of one that was not acknowledged as its own later, or never.
func addJob(add adder, o Op, durable bool) {
	if o.At == o.Owner {
		add("job "+o.Job+" at "+o.Owner, jobModel(), o)
	}
	switch {
	case o.Kind == Submit && !o.Durable, o.Kind == Cancel && !durable:
		o.Answered = false
	case o.Kind == Look && (!o.Current || o.At == o.Owner):
		return // its owner knows more: what runs at home nobody else is told
	}
	add("job "+o.Job+" in the federation", jobModel(), o)
}

// withoutRepeats keeps of a job's submissions without an answer the first, and so
// of its cancels: what a later one does, the first may do as late, and to do it
// again changes nothing. It spares the search to try them all in every order.
func withoutRepeats(ops []Op) []Op {
	first := map[Kind]int{}
	for i, o := range ops {
		if o.Answered || (o.Kind != Submit && o.Kind != Cancel) {
			continue
		}
		if j, ok := first[o.Kind]; !ok || o.Call < ops[j].Call {
			first[o.Kind] = i
		}
	}
	var out []Op
	for i, o := range ops {
		if j, ok := first[o.Kind]; o.Answered || !ok || i == j {
			out = append(out, o)
		}
	}
	return out
}

// withoutUnseen drops policies that were set without an answer and that no read
// showed: with or without them the same histories are linearizable. One that was
// shown had been set when the first read of it ended. Both spare the search what
// it would otherwise try at every later moment.
func withoutUnseen(ops []Op) []Op {
	shown := map[int64]Op{} // by value: the read that ended first
	for _, o := range ops {
		if first, ok := shown[o.Value]; o.Kind == GetPolicy && (!ok || o.Return < first.Return) {
			shown[o.Value] = o
		}
	}
	var out []Op
	for _, o := range ops {
		if o.Kind == SetPolicy && !o.Answered {
			first, ok := shown[o.Value]
			if !ok {
				continue
			}
			if first.Return >= o.Call { // else leave it to be found
				o.Answered, o.Return = true, first.Return
			}
		}
		out = append(out, o)
	}
	return out
}

// operations in porcupine's form.
func (ob object) operations() []porcupine.Operation {
	var brokers []string
	for _, o := range ob.ops {
		brokers = append(brokers, o.At)
	}
	slices.Sort(brokers)
	brokers = slices.Compact(brokers)
	out := make([]porcupine.Operation, 0, len(ob.ops))
	for _, o := range ob.ops {
		out = append(out, porcupine.Operation{
			ClientId: slices.Index(brokers, o.At), Input: o, Output: o, Call: int64(o.Call), Return: o.end(),
		})
	}
	return out
}

// file returns a name for files about the object.
func (ob object) file() string {
	return "linear-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-", r) {
			return r
		}
		return '-'
	}, ob.name) + ".html"
}
