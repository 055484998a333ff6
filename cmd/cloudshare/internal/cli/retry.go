package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
)

// Asker is what moves files by a broker: see client.Client.Ask.
type Asker interface {
	Ask(ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header,
	) (*http.Response, error)
}

// Progress shows how far files are. Its methods may be called from several goroutines.
type Progress interface {
	// Begin is the first, and ends what was before.
	Begin(what string, bytes int64)
	Done(bytes int64)
	End()
}

// RetryPause is the first wait of Retry.
const RetryPause = 500 * time.Millisecond

// Retry asks until there is no error, or one that does not pass: tries times at most, with waits by pause from
// RetryPause on, each twice as long.
func Retry(ctx context.Context, tries int, pause func(ctx context.Context, d time.Duration) error,
	passes func(error) bool, ask func() error,
) error {
	for wait, try := RetryPause, 1; ; wait, try = 2*wait, try+1 {
		err := ask()
		if err == nil || !passes(err) || try == tries || ctx.Err() != nil {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// IsUnanswered reports whether an error says that no broker answered: nobody did, or what stands before it.
func IsUnanswered(err error) bool {
	var problem *client.Problem
	if errors.As(err, &problem) {
		return problem.Status == http.StatusBadGateway || problem.Status == http.StatusGatewayTimeout ||
			problem.Status == http.StatusTooManyRequests
	}
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrBadAnswer)
}

// Sleep returns after some time, or with ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
