//go:build attacks

package attacks

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// rejected is what the leader says of a call that it will never order.
const rejected = intruder.Rejected

var (
	errNotYet = errors.New("not yet")
	jsonBody  = http.Header{"Content-Type": {"application/json"}}
)

func isRefused(err error) bool { return errors.Is(err, intruder.ErrRemoveRefused) }

func votePath(m testbed.Motion) string { return fmt.Sprintf("/v1/motions/%d/vote", m.Number) }

// notLeading is a site that does not lead.
func notLeading(t *testing.T) *testbed.Site {
	t.Helper()
	lead := leader(t)
	for _, s := range shared.Sites {
		if s != lead {
			return s
		}
	}
	return nil
}

// cancel ends a job if it has not ended, also when a test is over.
func cancel(t *testing.T, s *testbed.Site, id string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	_, _, err := s.Do(ctx, http.MethodDelete, "/v1/jobs/"+id, nil, nil)
	var ended *testbed.HTTPError
	if err != nil && (!errors.As(err, &ended) || ended.Status != http.StatusConflict) {
		t.Errorf("cancel %s: %v", id, err)
	}
}

// hexOf writes an id as questions do.
func hexOf(id [16]byte) string { return hex.EncodeToString(id[:]) }

// banned reports whether a site is, by a list of members.
func banned(all []testbed.Member, site string) bool {
	return slices.ContainsFunc(all, func(m testbed.Member) bool { return m.Site == site && m.Banned })
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// request asks a site's API as any client would: what is not in header is not sent.
func request(t *testing.T, s *testbed.Site, method, path, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), method, s.URL.String()+path, strings.NewReader(body))
	must(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := once.Do(req)
	must(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// once follows no way elsewhere.
var once = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// bearer is the header by which a site's operator asks.
func bearer(t *testing.T, s *testbed.Site) []string {
	t.Helper()
	text, err := s.Token()
	must(t, err)
	return []string{"Authorization", "Bearer " + text}
}
