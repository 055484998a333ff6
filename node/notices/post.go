package notices

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/outward"
)

// maxAnswer is how many bytes of an answer are read, and passed over.
const maxAnswer = 64 << 10

// outcome is what became of an attempt.
type outcome struct {
	sent bool
	gone bool // the receiver wants no more
	// away: it was not reached, or it says that it is overloaded or broken: it is left alone for a while.
	away bool
	text string // for people
}

// check returns why a URL is not asked, or nil.
func (c *Config) check(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return fmt.Errorf("%w: it is no https URL without a user", node.ErrNoticeRefused)
	}
	return c.Rules.CheckHost(u)
}

// newClient returns the client that sends: it follows no redirection, and takes no cookies.
func newClient(r *outward.Rules) *http.Client {
	return &http.Client{
		Transport:     r.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post makes one attempt.
func (s *Sender) post(ctx context.Context, n *node.Notices, at int) outcome {
	to := n.List[at].URL
	if err := s.cfg.check(to); err != nil {
		return outcome{text: err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Within, fmt.Errorf("no answer within %s", s.cfg.Within))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(n.Event))
	if err != nil {
		return outcome{text: "it is no URL"}
	}
	req.Header.Set("Content-Type", ContentType)
	req.Header.Set("User-Agent", outward.UserAgent)
	sign(req.Header, KeyOf(s.cfg.Secret, n.User), idOf(n.Event), s.now(), n.Event)
	res, err := s.http.Do(req)
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return outcome{away: true, text: context.Cause(ctx).Error()}
	case err != nil:
		return outcome{away: true, text: s.cfg.Rules.Plain(err).Error()}
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // so that the connection can be used again
	return judge(res.StatusCode)
}

// judge says what an answer's status means. Any 2xx is a receipt, and 410 says that nothing more is wanted (Standard
// Webhooks).
func judge(status int) outcome {
	o := outcome{text: fmt.Sprintf("it answered %d %s", status, http.StatusText(status))}
	switch {
	case status/100 == 2:
		o.sent = true
	case status/100 == 3:
		o.text += ": redirections are not followed"
	case status == http.StatusGone:
		o.gone = true
	case status/100 == 5, status == http.StatusTooManyRequests:
		o.away = true
	}
	return o
}

// pauseAfter returns the pause behind the n-th attempt, from 1: it doubles, and is shorter by up to a fifth, by the
// event and the attempt, so that what failed together is not tried again together.
func (c *Config) pauseAfter(n int, seed byte) time.Duration {
	d := c.First
	for ; n > 1 && d < c.Most; n-- {
		d *= 2
	}
	d = min(d, c.Most)
	return d - d/5*time.Duration(seed)/255
}
