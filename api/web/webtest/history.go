package webtest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/archive"
)

// History is what happened in the last hours before Now.
type History struct{ Broker *Broker }

var _ web.History = History{}

// Attempts implements web.History: one began each second, somewhere.
func (h History) Attempts(_ context.Context, since time.Time, at string, limit int) (out []web.Attempt) {
	n := len(h.Broker.SiteList)
	for i := range 8000 {
		a := web.Attempt{
			Job: command.JobID{Site: site(i * 7 % min(n, 9)), Num: uint64(i + 1)}, Attempt: 1, Site: site(i * 5 % n),
			Started: h.Broker.Now.Add(-time.Duration(i) * time.Second), Outcome: "succeeded",
		}
		a.Ended = a.Started.Add(time.Duration(20+i*11%140) * time.Second)
		if i%17 == 0 {
			a.Outcome = "failed"
		}
		if a.Ended.After(h.Broker.Now) {
			a.Ended, a.Outcome = time.Time{}, ""
		}
		if (a.Ended.IsZero() || a.Ended.After(since)) && (at == "" || at == a.Site) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b web.Attempt) int {
		if a.Ended.IsZero() != b.Ended.IsZero() {
			if a.Ended.IsZero() {
				return -1
			}
			return 1
		}
		return b.Ended.Compare(a.Ended)
	})
	return out[:min(len(out), limit)]
}

// EarlierOf implements web.History: every seventh task had a first attempt that
// was lost.
func (h History) EarlierOf(job command.JobID, from, to uint32, limit int) (out []web.Attempt) {
	j, err := h.Broker.Job(context.Background(), job)
	if err != nil || j.StartedAt.IsZero() {
		return nil
	}
	for n := from; n < min(to, j.Spec.Count) && len(out) < limit; n++ {
		if n%7 == 3 {
			out = append(out, web.Attempt{
				Job: job, Task: n, Attempt: 1, Site: site(int(n+1) % len(h.Broker.SiteList)), Outcome: "lost",
				Started: j.StartedAt.Add(-time.Duration(n) * time.Second), Ended: j.StartedAt,
			})
		}
	}
	return out
}

// Samples implements web.History: every account grew, and swayed a little.
func (h History) Samples(since time.Time) (out []archive.Sample) {
	const steps = 96
	for i := range steps {
		s := archive.Sample{At: h.Broker.Now.Add(-time.Duration(steps-i) * 15 * time.Minute)}
		if s.At.Before(since) {
			continue
		}
		for k, a := range h.Broker.Account.Sites {
			part := float64(i) / steps * (1 + float64((i*(k+3))%11-5)/25)
			s.Sites = append(s.Sites, archive.Standing{
				Site: a.Site, Contribution: part * amount(a.Contribution), Utility: part * amount(a.Utility),
				Priority: part * amount(a.Priority),
			})
		}
		out = append(out, s)
	}
	return out
}

func amount(sum string) float64 {
	n, err := strconv.ParseFloat(sum, 64)
	if err != nil {
		panic(err) // the fixture wrote it
	}
	return n
}
