package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/archive"
)

// Usages sums up what attempts have used.
type Usages interface {
	// Usage returns what the ended attempts of a job have used.
	Usage(ctx context.Context, id command.JobID) (*archive.Usage, error)
}

// usageTime bounds how long a page waits for the archive.
const usageTime = 2 * time.Second

// usageView is what a job's ended attempts have used of what they took.
type usageView struct {
	Rows   []pair
	Unsaid string // why there is nothing to show
}

// usage returns what a job's attempts have used. A part of the page that is asked for again does not show it: to sum it
// up takes reading the archive.
func (p *Pages) usage(r *http.Request, job *node.Job) (v usageView) {
	if p.cfg.Usages == nil || r.Header.Get("HX-Request") == "true" || !hasEnded(job) {
		return v
	}
	ctx, cancel := context.WithTimeout(r.Context(), usageTime)
	defer cancel()
	u, err := p.cfg.Usages.Usage(ctx, job.ID)
	switch {
	case err != nil:
		v.Unsaid = p.cfg.Problem(err).Title
	case u.Attempts > 0:
		v.Rows = usageRows(u)
	}
	return v
}

// hasEnded reports whether a task has.
func hasEnded(job *node.Job) bool {
	for state := fsm.Queued; state <= fsm.Held; state++ {
		if state.Ended() && job.Counts[state.String()] > 0 {
			return true
		}
	}
	return false
}

func usageRows(u *archive.Usage) []pair {
	rows := []pair{
		{"Attempts that ended", count(u.Attempts)},
		{"Processor", processorWords(u)},
		{"Memory", memoryWords(u)},
		{"Files", byteWords(u.InBytes) + " in, " + byteWords(u.OutBytes) + " out"},
		{"Measured by", sourceWords(u.Sources)},
	}
	for i := range u.Gaps {
		rows = append(rows, pair{"Missing", u.Gaps[i].Reason})
	}
	return rows
}

func processorWords(u *archive.Usage) string {
	share, ok := u.CPUShare()
	if !ok {
		return "not known"
	}
	return fmt.Sprintf("%s of its cores: %s, %s of it in the kernel", shareWords(share),
		took(time.Duration(u.UserMs+u.SystemMs)*time.Millisecond), took(time.Duration(u.SystemMs)*time.Millisecond))
}

func memoryWords(u *archive.Usage) string {
	if u.PeakBytes == 0 {
		return "not known"
	}
	words := byteWords(u.PeakBytes) + " at most"
	if share, ok := u.PeakShare(); ok {
		words += fmt.Sprintf(", %s of the %s MiB that a task may use", shareWords(share), count(u.MemMiB))
	}
	if mean := u.MeanPeak(); mean > 0 && u.Attempts > 1 {
		words += ", " + byteWords(mean) + " in the mean"
	}
	return words
}

// shareWords words a share.
func shareWords(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// sourceWords says what measured how many attempts.
func sourceWords(by map[command.MeasureSource]uint64) string {
	var parts []string
	for _, source := range slices.Sorted(maps.Keys(by)) {
		part := source.String() + ": " + count(by[source])
		if source == command.MeasuredUnknown {
			part += " (" + command.UnmeasuredWhy + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// usedWords says what an attempt has used of what it took, "" if nothing is known.
func usedWords(job *node.Job, t *node.Task) string {
	m := &t.Measured
	var parts []string
	if cpu := m.UserMs + m.SystemMs; cpu > 0 {
		part := "processor " + took(time.Duration(cpu)*time.Millisecond)
		if held := t.Run.Milliseconds() * job.Spec.Resources.CPU; held > 0 {
			part += ", " + shareWords(float64(cpu)/float64(held))
		}
		parts = append(parts, part)
	}
	if m.PeakBytes > 0 {
		part := "memory " + byteWords(m.PeakBytes)
		if asked := job.Spec.Resources.Memory << 20; asked > 0 {
			part += ", " + shareWords(float64(m.PeakBytes)/float64(asked))
		}
		parts = append(parts, part)
	}
	if m.InBytes > 0 {
		parts = append(parts, byteWords(m.InBytes)+" in")
	}
	if m.OutBytes > 0 {
		parts = append(parts, byteWords(m.OutBytes)+" out")
	}
	if m.Source != command.MeasuredUnknown {
		parts = append(parts, "by "+m.Source.String())
	}
	return strings.Join(parts, "; ")
}
