package trouble

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
	MinRest = 5 * time.Second
	MaxRest = time.Minute
)

// trouble is why a machine rests, or rested last.
type trouble struct {
	why   string
	pause time.Duration // of this rest
	until int64         // CLOCK_BOOTTIME of its end
}

// Troubles are those of machines, by name; the loop writes, others read.
type Troubles struct {
	mu sync.Mutex
	by map[string]trouble
	// handlers of the machines, as they were.
	handlers map[string]string
}

// NewTroubles returns troubles of no machine yet.
func NewTroubles() *Troubles {
	return &Troubles{by: map[string]trouble{}, handlers: map[string]string{}}
}

// Begin has a machine rest. What was begun before its rest and is handed back during it
// changes nothing but the reason.
func (t *Troubles) Begin(machine, handler, why string, boot int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.by[machine]
	x.why = why
	if boot >= x.until {
		x.pause = min(max(2*x.pause, MinRest), MaxRest)
		x.until = boot + int64(x.pause)
	}
	t.by[machine], t.handlers[machine] = x, handler
}

// End forgets a machine's trouble if what has started was begun after its last rest.
func (t *Troubles) End(machine string, begun int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, known := t.by[machine]; known && begun >= x.until {
		delete(t.by, machine)
		delete(t.handlers, machine)
	}
}

// Rests reports whether a machine rests at that moment.
func (t *Troubles) Rests(machine string, boot int64) bool {
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

// Text says what is wrong with a machine, in one line.
func (t *Troubles) Text(machine string, boot int64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[machine].text(machine, boot)
}

// Of says what is wrong with the machines of a handler, in one line; "" = nothing. An
// empty handler means all.
func (t *Troubles) Of(handler string, boot int64) string {
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

// Count returns the machines in trouble, by handler.
func (t *Troubles) Count() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := map[string]int{}
	for _, handler := range t.handlers {
		by[handler]++
	}
	return by
}

// Keep forgets machines that are there no more.
func (t *Troubles) Keep(there func(machine string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.by {
		if !there(name) {
			delete(t.by, name)
			delete(t.handlers, name)
		}
	}
}
