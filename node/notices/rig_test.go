package notices

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/outward"
	"github.com/cloudshare/cloudshare/node/record"
)

var secret = []byte("a secret of the site's operator")

// rig is a book with its journal, and a sender while it runs.
type rig struct {
	*Book
	t       *testing.T
	cfg     Config
	journal *record.Journal
	sender  *Sender
	stop    func()
}

// newRig returns one that may ask the hosts of some servers.
func newRig(t *testing.T, cfg Config, servers ...*httptest.Server) *rig {
	t.Helper()
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	rules := outward.Rules{
		Private: true, Refused: node.ErrNoticeRefused, HostsKey: "notify.to", PrivateKey: "notify.private", Roots: x509.NewCertPool(),
	}
	for _, s := range servers {
		rules.Roots.AddCert(s.Certificate())
		rules.Hosts = append(rules.Hosts, s.Listener.Addr().String())
	}
	cfg.Secret, cfg.Rules, cfg.Source = secret, &rules, "/cloudshare/f/site-1"
	if cfg.First == 0 {
		cfg.First, cfg.Most = time.Millisecond, 4*time.Millisecond
	}
	r := &rig{t: t, cfg: cfg, journal: j}
	r.restart()
	t.Cleanup(func() { r.stop() })
	return r
}

// restart has the next run of a broker read what the last one has left.
func (r *rig) restart() {
	r.t.Helper()
	if r.stop != nil {
		r.stop()
	}
	b, err := Open(r.cfg, r.journal)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Book = b
	r.sender = New(b, func(err error, msg string) { r.t.Error(err, msg) })
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { r.sender.Run(ctx) })
	r.stop = func() { cancel(); run.Wait() }
}

// accept has a job with hooks as the core records it.
func (r *rig) accept(num uint64, user string, hooks ...jobspec.Hook) {
	r.t.Helper()
	n := node.NewNotices(user, hooks)
	w := record.PutRecord(record.BucketNotices, record.Number(num), n)
	if err := r.journal.Commit([]record.Write{w}); err != nil {
		r.t.Fatal(err)
	}
	r.Keep(num, n)
}

func (r *rig) end(num uint64, state string) {
	r.t.Helper()
	if err := r.sender.End([]node.Job{jobOf(num, state)}); err != nil {
		r.t.Fatal(err)
	}
}

func jobOf(num uint64, state string) node.Job {
	return node.Job{
		ID: command.JobID{Site: "site-1", Num: num}, State: state, Reason: "why", Counts: map[string]uint32{state: 1},
		SubmittedAt: time.Unix(1, 0), Spec: jobspec.Spec{Name: "nightly", Labels: map[string]string{"a": "b"}},
	}
}

func on(s *httptest.Server, events ...string) jobspec.Hook {
	if len(events) == 0 {
		events = []string{jobspec.HookEnded}
	}
	return jobspec.Hook{URL: s.URL + "/hook", On: events}
}

// await returns a job's notices once they are as they should be.
func (r *rig) await(num uint64, what string, is func(n node.Notices) bool) node.Notices {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for {
		n, _ := r.Find(num)
		if is(n) {
			return n
		}
		select {
		case <-tick.C:
		case <-late:
			r.t.Fatalf("%s never came: %+v", what, n)
		}
	}
}

func over(n node.Notices) bool { return n.EndedMs != 0 && !n.Open() }

// server is a receiver's, over TLS.
func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s
}
