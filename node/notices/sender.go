package notices

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node"
)

// Sender sends what the book says.
type Sender struct {
	cfg  Config
	book *Book
	http *http.Client
	now  func() time.Time
	warn func(err error, msg string)

	mu    sync.Mutex
	fresh []dueNotice   // not in turns yet; guarded by mu
	wake  chan struct{} // has one while there are some

	turns *turns // owned by Run
}

// lookEvery is how often those are looked for whose time is over.
const lookEvery = time.Minute

// New returns a sender of a book; warn is told of what a disk does not take.
func New(book *Book, warn func(err error, msg string)) *Sender {
	return &Sender{
		cfg: book.cfg, book: book, http: newClient(book.cfg.Rules), now: time.Now, warn: warn,
		wake: make(chan struct{}, 1), turns: newTurns(),
	}
}

// End tells of jobs of this site that have ended: what is to be sent of them is durable when it returns.
func (s *Sender) End(list []node.Job) error {
	refs, err := s.book.end(s.cfg.Source, list, s.now())
	due := make([]dueNotice, len(refs))
	for i, r := range refs {
		due[i] = dueNotice{ref: r}
	}
	s.offer(due)
	return err
}

// offer hands notices to Run.
func (s *Sender) offer(list []dueNotice) {
	if len(list) == 0 {
		return
	}
	s.mu.Lock()
	s.fresh = append(s.fresh, list...)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// finished is an attempt that has ended.
type finished struct {
	ref
	lane  *lane
	out   outcome
	again int64
}

// Run sends until ctx ends, and waits for what is under way. What was under way is tried again at the next start.
func (s *Sender) Run(ctx context.Context) {
	ended := make(chan finished)
	var under sync.WaitGroup
	defer s.http.CloseIdleConnections()
	defer under.Wait()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.offer(s.book.due())
	for {
		if wait := s.begin(ctx, ended, &under); wait > 0 {
			timer.Reset(wait)
		}
		select {
		case f := <-ended:
			s.turns.done(f.lane, f.ref, f.out, f.again, s.now().UnixMilli())
		case <-s.wake:
			s.take()
		case <-timer.C:
		case <-look.C:
			s.giveUp()
		case <-ctx.Done():
			return
		}
	}
}

// take puts fresh notices in their lanes.
func (s *Sender) take() {
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	for _, d := range fresh {
		if n, known := s.book.Find(d.num); known {
			s.turns.add(n.User, hostOf(n.List[d.at].URL), d)
		}
	}
}

// begin begins what may go now, and returns in how long more may, 0 = with the next event.
func (s *Sender) begin(ctx context.Context, ended chan<- finished, under *sync.WaitGroup) time.Duration {
	for {
		r, l, wait := s.turns.next(s.now().UnixMilli())
		if l == nil {
			return wait
		}
		under.Go(func() {
			f := finished{ref: r, lane: l}
			f.out, f.again = s.attempt(ctx, r)
			select {
			case ended <- f:
			case <-ctx.Done():
			}
		})
	}
}

// attempt sends a notice once and notes the outcome, unless the broker stops meanwhile.
func (s *Sender) attempt(ctx context.Context, r ref) (outcome, int64) {
	n, known := s.book.Find(r.num)
	if !known {
		return outcome{gone: true}, 0
	}
	o := s.post(ctx, &n, r.at)
	if ctx.Err() != nil && !o.sent {
		return o, 0
	}
	again, err := s.book.settle(r, o, s.now())
	if err != nil {
		s.warn(err, "a notice may be sent once more after a restart")
	}
	return o, again
}

// mostGivenUp bounds what one look gives up: so much goes into one write of the journal.
const mostGivenUp = 1000

// giveUp ends those whose time is over and whose host cannot be reached: their turn may never come.
func (s *Sender) giveUp() {
	now := s.now()
	var list []ref
	s.turns.resting(func(r ref) bool {
		if len(list) == mostGivenUp || !s.book.overdue(r, now) {
			return false
		}
		list = append(list, r)
		return true
	})
	if len(list) == 0 {
		return
	}
	if err := s.book.abandon(list, now); err != nil {
		s.warn(err, "notices that are given up may be tried after a restart")
	}
}

// hostOf returns the host and port of a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// idOf returns the id of an event.
func idOf(event json.RawMessage) string {
	var e struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(event, &e) != nil {
		return ""
	}
	return e.ID
}

// errNoSecret reports that nothing can be signed.
var errNoSecret = errors.New("a secret of at least 24 bytes is needed to sign what is sent")

// Validate returns what is wrong with a configuration, or nil.
func (c *Config) Validate() error {
	switch {
	case len(c.Hosts) > 0 && len(c.Secret) < MinSecret:
		return errNoSecret
	case slices.Contains(c.Hosts, ""):
		return errors.New("a host is empty")
	}
	return nil
}
