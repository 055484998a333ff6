package guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

// Times of asking.
const (
	// share of what is left after which it is asked again: two questions may get
	// lost before a grace and a margin of the usual size begin to count.
	share     = 4
	leastWait = 100 * time.Millisecond
	waitAgain = 500 * time.Millisecond // for leave to begin, and after an error
	// a question's answer is waited for as long as the next one is away, within:
	leastPatience = 500 * time.Millisecond
	mostPatience  = 3 * time.Second
)

// slower is by how much, in percent, this machine's clock may run slower than the
// handler's.
const slower = 1

// asker asks how long the attempt may live.
type asker struct {
	orders Orders
	run    string
	http   *http.Client
	// until is the moment by which the attempt must be dead, on CLOCK_BOOTTIME in
	// nanoseconds; 0 = it was never allowed to begin. Invariant: only grows.
	until atomic.Int64
	leave chan struct{} // closed once until is set
	end   chan struct{} // closed when it is told that the attempt is over
	// said is why there was no answer. It is read once nobody asks any more.
	said error
}

func newAsker(o Orders) *asker {
	return &asker{
		orders: o, run: rand.Text(), leave: make(chan struct{}), end: make(chan struct{}),
		http: &http.Client{
			// No proxy of the task's environment, and nothing that is sent elsewhere.
			Transport: &http.Transport{
				DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 1, DisableCompression: true,
				MaxResponseHeaderBytes: maxHeader,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// askUntilEnd asks again and again until it is told the end, or ctx ends.
func (a *asker) askUntilEnd(ctx context.Context) {
	for {
		wait, over := a.once(ctx)
		if over {
			close(a.end)
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// once asks once, and returns how soon to ask again.
func (a *asker) once(ctx context.Context) (wait time.Duration, over bool) {
	asked := executor.Boottime()
	left := time.Duration(a.until.Load() - asked)
	patience := min(max(left/share, leastPatience), mostPatience)
	if a.until.Load() == 0 {
		patience = mostPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := a.question(ctx)
	switch {
	case err != nil:
		a.said = err
		a.http.CloseIdleConnections() // the next one may find another way
		return min(waitAgain, max(left/share, leastWait)), false
	case answer.End:
		return 0, true
	case answer.Left == 0:
		a.said = errors.New("the site has no lease")
		return waitAgain, false
	}
	a.allow(asked, answer.Left)
	return max(time.Duration(a.until.Load()-executor.Boottime())/share, leastWait), false
}

// allow moves the moment by which the attempt must be dead. It counts from when the
// question was asked, which is before it was answered, whatever the way took.
func (a *asker) allow(asked int64, left time.Duration) {
	until := asked + int64(left-left*slower/100)
	was := a.until.Load()
	if until <= was {
		return
	}
	a.until.Store(until)
	if was == 0 {
		close(a.leave)
	}
}

// question asks the handler.
func (a *asker) question(ctx context.Context) (Answer, error) {
	q := Question{Attempt: a.orders.Attempt, Run: a.run, Nonce: rand.Text()}
	to := strings.TrimRight(a.orders.URL, "/") + path + "?" + q.encode(a.orders.Secret)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return Answer{}, err
	}
	res, err := a.http.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return Answer{}, err
	}
	if res.StatusCode != http.StatusOK {
		return Answer{}, fmt.Errorf("%s answers %s: %.100q", a.orders.URL, res.Status, b)
	}
	return readAnswer(string(b), q, a.orders.Secret)
}
