package imports

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/outward"
)

// Reasons for which a fetch is ended.
var (
	errSlow    = errors.New("it took too long")
	errStalled = errors.New("too little came")
)

// newClient returns the client by which URLs are fetched: it checks each redirection and each address, takes no
// cookies, and unpacks nothing, so that what is kept is what was served.
func (m *Imports) newClient() *http.Client {
	checkRedirect := func(next *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return refuse("it leads elsewhere more than %d times", maxRedirects)
		}
		next.Header.Del("Referer")
		return m.checkURL(next.URL)
	}
	return &http.Client{Transport: m.rules().Transport(), CheckRedirect: checkRedirect}
}

// fetch brings one URL into the store.
func (m *Imports) fetch(ctx context.Context, user string, k key, f *fetch) (files.Blob, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from, size, err := m.open(ctx, cancel, k)
	if err != nil {
		return files.Blob{}, m.explain(ctx, err)
	}
	defer from.Close()
	if size > m.cfg.MaxBytes {
		return files.Blob{}, refuse("it has %d bytes, more than the %d that a file may have", size, m.cfg.MaxBytes)
	}
	f.size.Store(size)
	in := &checked{from: from, f: f, want: k.want, sum: sha256.New()}
	defer m.watch(f, cancel)()
	b, err := m.cfg.Store.Put(ctx, user, in, m.cfg.MaxBytes)
	if in.err != nil {
		err = in.err
	}
	return b, m.explain(ctx, err)
}

// explain returns an error, or that it comes of a fetch that was ended for too little that came.
func (m *Imports) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errStalled) {
		return failed(fmt.Errorf("%w: less than %d bytes within %s", cause, leastBytes, m.cfg.Stall))
	}
	return err
}

// open asks for what a URL names; its size is -1 if that is not said.
func (m *Imports) open(ctx context.Context, cancel context.CancelCauseFunc, k key) (io.ReadCloser, int64, error) {
	if isObject(k.url) {
		return m.openObject(ctx, cancel, k)
	}
	u, err := m.check(k.url)
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, refuse("it is no URL")
	}
	req.Header.Set("User-Agent", outward.UserAgent)
	res, err := m.http.Do(req)
	if err != nil {
		return nil, 0, failed(plain(err))
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, 0, failed(fmt.Errorf("its host answered %d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	}
	return res.Body, res.ContentLength, nil
}

// watch ends a fetch of which too little comes, until it is told that the fetch has ended.
func (m *Imports) watch(f *fetch, cancel context.CancelCauseFunc) (done func()) {
	stop := make(chan struct{})
	m.under.Go(func() {
		tick := time.NewTicker(m.cfg.Stall)
		defer tick.Stop()
		for last := int64(0); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			now := f.received.Load()
			if now-last < leastBytes && now != f.size.Load() {
				cancel(errStalled)
			}
			last = now
		}
	})
	return func() { close(stop) }
}

// checked counts what comes, and ends with an error in the place of io.EOF if it is not what was asked for: so nothing
// of it is kept.
type checked struct {
	from io.Reader
	f    *fetch
	want files.Hash
	sum  hash.Hash
	err  error // why it ended, nil: by its end, or by who reads
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.f.received.Add(int64(n))
	_, _ = c.sum.Write(p[:n]) // a hash takes all
	switch {
	case errors.Is(err, io.EOF):
		if got := files.Hash(c.sum.Sum(nil)); c.want != (files.Hash{}) && got != c.want {
			c.err = refuse("its bytes have the SHA-256 %s, not the %s that was asked for", got, c.want)
			return 0, c.err
		}
		return n, io.EOF
	case errors.Is(err, ErrRefused), errors.Is(err, ErrFailed):
		c.err = err
		return n, c.err
	case err != nil:
		c.err = failed(fmt.Errorf("it broke off: %w", plain(err)))
		return n, c.err
	}
	return n, nil
}

// failed says of an error that asking again may help, unless it is a refusal.
func failed(err error) error {
	if errors.Is(err, ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}
