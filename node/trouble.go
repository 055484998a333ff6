package node

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A machine whose handler cannot start tasks, for a reason of its own (no processes, no
// space, a broken cgroup), hands them back, and rests: it offers nothing and starts
// nothing, its own users' tasks neither, so that it does not draw the queue. Each
// further such reason makes the next rest twice as long; the first task that starts
// after a rest ends the trouble.
const (
	minRest = 5 * time.Second
	maxRest = time.Minute
)

// trouble is why a machine rests, or rested last.
type trouble struct {
	why   string
	pause time.Duration // of this rest
	until int64         // CLOCK_BOOTTIME of its end
}

// troubles are those of machines, by name; the loop writes, others read.
type troubles struct {
	mu sync.Mutex
	by map[string]trouble
	// handlers of the machines, as they were.
	handlers map[string]string
}

func newTroubles() *troubles {
	return &troubles{by: map[string]trouble{}, handlers: map[string]string{}}
}

// begin has a machine rest. What was begun before its rest and is handed back during it
// changes nothing but the reason.
func (t *troubles) begin(machine, handler, why string, boot int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.by[machine]
	x.why = why
	if boot >= x.until {
		x.pause = min(max(2*x.pause, minRest), maxRest)
		x.until = boot + int64(x.pause)
	}
	t.by[machine], t.handlers[machine] = x, handler
}

// end forgets a machine's trouble if what has started was begun after its last rest.
func (t *troubles) end(machine string, begun int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, known := t.by[machine]; known && begun >= x.until {
		delete(t.by, machine)
		delete(t.handlers, machine)
	}
}

// rests reports whether a machine rests at that moment.
func (t *troubles) rests(machine string, boot int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return boot < t.by[machine].until
}

// text says what is wrong with a machine, in one line.
func (x trouble) text(machine string, boot int64) string {
	rest := "tries again with the next task"
	if left := time.Duration(x.until - boot); left > 0 {
		rest = fmt.Sprintf("rests, and tries again in %s", max(left.Round(time.Second), time.Second))
	}
	return fmt.Sprintf("%s could not start tasks and %s: %s", machine, rest, x.why)
}

// text says what is wrong with a machine, in one line.
func (t *troubles) text(machine string, boot int64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[machine].text(machine, boot)
}

// of says what is wrong with the machines of a handler, in one line; "" = nothing. An
// empty handler means all.
func (t *troubles) of(handler string, boot int64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var texts []string
	for machine, x := range t.by {
		if handler == "" || t.handlers[machine] == handler {
			texts = append(texts, x.text(machine, boot))
		}
	}
	slices.Sort(texts)
	const most = 3 // a cluster can have thousands
	if n := len(texts); n > most {
		texts = append(texts[:most], fmt.Sprintf("and %d more machines", n-most))
	}
	return strings.Join(texts, "; ")
}

// count returns the machines in trouble, by handler.
func (t *troubles) count() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := map[string]int{}
	for _, handler := range t.handlers {
		by[handler]++
	}
	return by
}

// keep forgets machines that are there no more.
func (t *troubles) keep(machines map[string]machine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.by {
		if _, there := machines[name]; !there {
			delete(t.by, name)
			delete(t.handlers, name)
		}
	}
}

// rests reports whether a machine rests now.
func (c *core) rests(machine string) bool { return c.troubles.rests(machine, c.now.boot) }

// allRest reports whether there are machines, and all of them rest.
func (c *core) allRest() bool {
	return len(c.order) > 0 && !slices.ContainsFunc(c.order, func(name string) bool { return !c.rests(name) })
}
