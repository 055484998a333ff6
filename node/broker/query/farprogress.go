package query

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/askprogress"
)

// Bounds of asking other sites what this site's tasks do there before they start.
const (
	// farFresh is for how long what a site has told is told again, and farSilent for how long one is not asked that did
	// not answer.
	farFresh  = time.Second
	farSilent = 5 * time.Second
	// farPatience is how long who looks at tasks waits for the answers of all sites.
	farPatience = time.Second
	maxFarSites = 8
	// maxFarWords bounds what is remembered of one site.
	maxFarWords = 1000
)

// farProgress asks the sites that are to run this site's tasks what they do before those start, when somebody looks. A
// site is asked one question at a time.
type farProgress struct {
	dial    func(ctx context.Context, site, addr string) (net.Conn, error)
	address func(site string) string
	now     func() time.Time

	mu    sync.Mutex
	sites map[string]*farSite // members only: the state names them
}

// farSite is what one site has told.
type farSite struct {
	// turn is held by the one who asks, and guards the rest.
	turn   chan struct{}
	silent time.Time // until then it is not asked
	words  map[askprogress.Ref]farWord
}

type farWord struct {
	text string
	at   time.Time
}

// explain gives those of a job's tasks that other sites prepare these sites' words as the reason. REQUIRES: the job is
// this site's own.
func (f *farProgress) explain(ctx context.Context, own string, job command.JobID, tasks []node.Task) {
	at := map[string][]int{}
	for i := range tasks {
		t := &tasks[i]
		if t.State != fsm.Assigned.String() || t.Site == own || t.Reason != "" {
			continue
		}
		if list := at[t.Site]; len(list) < askprogress.MaxAttempts && (list != nil || len(at) < maxFarSites) {
			at[t.Site] = append(list, i)
		}
	}
	// Who looks may leave: that must not look like a site's silence.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farPatience)
	defer cancel()
	var all sync.WaitGroup
	for site, list := range at {
		all.Go(func() {
			refs := make([]askprogress.Ref, len(list))
			for n, i := range list {
				t := &tasks[i]
				refs[n] = askprogress.Ref{Num: job.Num, Task: t.Position, Attempt: t.Attempt, Token: t.Token}
			}
			words, ok := f.ask(ctx, site, refs)
			for n, i := range list {
				if tasks[i].Reason = site + " prepares its start, and does not say how far it is"; ok {
					tasks[i].Reason = words[n]
				}
			}
		})
	}
	all.Wait()
}

// ask returns what a site says of attempts; false: it does not answer.
func (f *farProgress) ask(ctx context.Context, site string, refs []askprogress.Ref) ([]string, bool) {
	s := f.site(site)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, false
	}
	texts, missing := s.remembered(refs, f.now())
	if len(missing) == 0 {
		return texts, true
	}
	if f.now().Before(s.silent) {
		return nil, false
	}
	told, err := f.question(ctx, site, refs)
	if err != nil {
		s.silent = f.now().Add(farSilent)
		return nil, false
	}
	s.remember(refs, told, f.now())
	return told, true
}

func (f *farProgress) question(ctx context.Context, site string, refs []askprogress.Ref) ([]string, error) {
	conn, err := f.dial(ctx, site, f.address(site))
	if err != nil {
		return nil, err
	}
	return askprogress.Ask(ctx, conn, refs)
}

func (f *farProgress) site(name string) *farSite {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sites == nil {
		f.sites = map[string]*farSite{}
	}
	s := f.sites[name]
	if s == nil {
		s = &farSite{turn: make(chan struct{}, 1), words: map[askprogress.Ref]farWord{}}
		f.sites[name] = s
	}
	return s
}

// remembered returns what is known of attempts, and of which it is not. REQUIRES: s.turn held.
func (s *farSite) remembered(refs []askprogress.Ref, now time.Time) (texts []string, missing []askprogress.Ref) {
	for _, r := range refs {
		w, ok := s.words[r]
		if !ok || now.Sub(w.at) >= farFresh {
			missing = append(missing, r)
		}
		texts = append(texts, w.text)
	}
	return texts, missing
}

// remember keeps what a site told. REQUIRES: s.turn held.
func (s *farSite) remember(refs []askprogress.Ref, texts []string, now time.Time) {
	for r, w := range s.words {
		if now.Sub(w.at) >= farFresh || len(s.words) > maxFarWords {
			delete(s.words, r)
		}
	}
	for i, r := range refs {
		s.words[r] = farWord{texts[i], now}
	}
}

// GiveProgress returns what attempts of jobs of the site from do here before they start, for that site's broker.
func (rd *Reader) GiveProgress(from string, refs []askprogress.Ref) []string {
	texts := make([]string, len(refs))
	if from == rd.site {
		return texts
	}
	for i, r := range refs {
		job := command.JobID{Site: from, Num: r.Num}
		texts[i] = rd.progress.of(executor.ID{Job: job.String(), Task: r.Task, Attempt: r.Attempt, Token: r.Token})
	}
	return texts
}
