package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/cloudshare/cloudshare/api/wire"
)

// ArchiveQuery selects what a broker archived; zero fields select all. Since and
// Until are dates, moments, or how long ago: 2026-01-31, 2026-01-31T12:00:00Z, 7d.
type ArchiveQuery struct {
	Since, Until string
	Site         string // owner or executor
	Label        string // KEY=VALUE
	Users        bool   // an export in NDJSON or CSV says whose the jobs are
}

func (q ArchiveQuery) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"since": q.Since, "until": q.Until, "site": q.Site, "label": q.Label} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.Users {
		v.Set("users", "true")
	}
	return v
}

// Report sums up the broker's archive by site, user, hour, day, month or label:KEY.
func (c *Client) Report(ctx context.Context, q ArchiveQuery, by string) (wire.Report, error) {
	v := q.values()
	v.Set("by", by)
	r, _, err := get[wire.Report](ctx, c, http.MethodGet, "/v1/report", v, nil, nil)
	return r, err
}

// Export streams the broker's archive as ndjson, csv or swf to w. After an error
// w may hold a part.
func (c *Client) Export(ctx context.Context, q ArchiveQuery, format string, w io.Writer) error {
	v := q.values()
	v.Set("format", format)
	res, err := c.do(ctx, http.MethodGet, "/v1/archive", v, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("export: the answer broke off: %w", err)
	}
	return nil
}
