package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// expense is what a federation has used so far.
type expense struct {
	processorTime
	entries int // of its log
	syncs   int // of its brokers' journals
}

func (e expense) since(was expense) expense {
	return expense{e.processorTime.since(was.processorTime), e.entries - was.entries, e.syncs - was.syncs}
}

func expenseOf(ctx context.Context, fed *testbed.Federation) (e expense, err error) {
	for _, s := range fed.Sites {
		values, cause := metricsOf(ctx, s, "cloudshare_entries_applied", "cloudshare_journal_syncs_total")
		if cause != nil {
			return e, cause
		}
		e.entries = max(e.entries, int(values[0]))
		e.syncs += int(values[1])
	}
	e.processorTime, err = processorTimeOf(fed)
	return e, err
}

// metricsOf reads metrics that have no labels.
func metricsOf(ctx context.Context, s *testbed.Site, names ...string) ([]float64, error) {
	text, _, err := s.Do(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("ask metrics: %w", err)
	}
	return parseMetrics(string(text), names)
}

func parseMetrics(text string, names []string) ([]float64, error) {
	values, found := make([]float64, len(names)), 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		i := slices.Index(names, name)
		if i < 0 {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("parse metric %s: %w", name, err)
		}
		values[i] = v
		found++
	}
	if found != len(names) {
		return nil, fmt.Errorf("%d of the metrics %v are missing", len(names)-found, names)
	}
	return values, nil
}

// processorTime is what a federation has used of the cores so far. Unlike rates
// it depends little on who else runs on them.
type processorTime struct {
	brokers     time.Duration
	supervisors time.Duration // and what became of those that have left
	tasks       time.Duration // collected by supervisors
}

func (p processorTime) total() time.Duration { return p.brokers + p.supervisors + p.tasks }

func (p processorTime) since(was processorTime) processorTime {
	return processorTime{p.brokers - was.brokers, p.supervisors - was.supervisors, p.tasks - was.tasks}
}

// perTask is in milliseconds.
func perTask(d time.Duration, n int) float64 { return d.Seconds() * 1000 / float64(n) }

// addCPU adds the processor time of one of n tasks beside that of one bare
// fork/exec.
func addCPU(t *table, name string, used processorTime, bare time.Duration, n int) {
	t.add(figure{
		name: "processor time of a task, " + name, unit: "ms", measured: perTask(used.total(), n), limit: perTask(bare, n),
		note: fmt.Sprintf("limit: bare fork/exec; brokers %.2f, supervisors %.2f, the task itself %.2f",
			perTask(used.brokers, n), perTask(used.supervisors, n), perTask(used.tasks, n)),
	})
}

// processorTimeOf adds up the brokers and what they have started.
func processorTimeOf(fed *testbed.Federation) (sum processorTime, err error) {
	brokers := map[int]bool{}
	for _, s := range fed.Sites {
		pid, cause := s.PID()
		if cause != nil {
			return sum, cause
		}
		brokers[pid] = true
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return sum, fmt.Errorf("list processes: %w", err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		p, err := parseTimes(string(text))
		switch {
		case err != nil:
			return sum, err
		case brokers[p.pid]:
			sum.brokers += p.own
			sum.supervisors += p.children
		case brokers[p.parent]:
			sum.supervisors += p.own
			sum.tasks += p.children
		}
	}
	return sum, nil
}

// processTimes is of a line of the process table; children are those that it
// has collected, with theirs.
type processTimes struct {
	pid, parent   int
	own, children time.Duration
}

// clockTick is the unit of the process table's times, on every Linux.
const clockTick = 10 * time.Millisecond

func parseTimes(stat string) (p processTimes, err error) {
	// The name is in parentheses and may itself hold anything.
	head, rest, _ := strings.Cut(stat, " ")
	f := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
	if len(f) < 15 {
		return p, errors.New("process table: a line is too short")
	}
	n := [6]int{}
	for i, text := range append([]string{head, f[1]}, f[11:15]...) {
		if n[i], err = strconv.Atoi(text); err != nil {
			return p, fmt.Errorf("process table: %w", err)
		}
	}
	return processTimes{
		pid: n[0], parent: n[1],
		own: time.Duration(n[2]+n[3]) * clockTick, children: time.Duration(n[4]+n[5]) * clockTick,
	}, nil
}

// ownProcessorTime returns that of this process and of the children it has collected.
func ownProcessorTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil { // fails for another who only
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
