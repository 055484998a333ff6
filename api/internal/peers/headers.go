package peers

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Another site's broker is run by somebody else. What a user tells this broker about itself (a token, a cookie) never
// leaves it, and what another one answers is data: a browser takes it for this broker's own word, so it may not be a
// page, set a cookie or lead elsewhere.

// forwarded are the headers of a client's request that another broker gets. Those of brokers are set by this one.
var forwarded = headers(
	"Accept", "Content-Type", "Content-Length", "Content-Encoding", "If-None-Match", "Range", wire.HeaderKey,
)

// answered are the headers of another broker's answer that a client gets.
var answered = headers(
	"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition", "Content-Range", "Accept-Ranges", "ETag",
	"Cache-Control", "Date", "Retry-After", wire.HeaderReplayed,
	wire.HeaderIndex, wire.HeaderHome, wire.HeaderAge, wire.HeaderStale, wire.HeaderSite,
)

// types that answers have. Anything else, text/html before all, is passed on as bytes to be saved.
var types = map[string]string{
	"application/json": "", "application/problem+json": "", "application/x-ndjson": "", "application/octet-stream": "",
	"text/plain": "; charset=utf-8", "text/event-stream": "; charset=utf-8",
}

func headers(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[http.CanonicalHeaderKey(name)] = true
	}
	return set
}

// keepOnly drops all other headers.
func keepOnly(h http.Header, names map[string]bool) {
	for name := range h {
		if !names[name] {
			delete(h, name)
		}
	}
}

// harmless returns an answer of another broker without what it may not say to a client of this one. No trailers
// follow its body.
func harmless(res *http.Response) (*http.Response, error) {
	redirects := res.StatusCode/100 == 3 && res.StatusCode != http.StatusNotModified
	if res.StatusCode < http.StatusOK || redirects {
		return nil, fmt.Errorf("%w: it answers %d, which no broker does", errOtherBroker, res.StatusCode)
	}
	out := *res
	out.Header, out.Trailer = res.Header.Clone(), nil
	keepOnly(out.Header, answered)
	out.Header.Set("Content-Type", harmlessType(res.Header.Get("Content-Type")))
	out.Header.Set("X-Content-Type-Options", "nosniff")
	return &out, nil
}

func harmlessType(named string) string {
	kind, _, err := mime.ParseMediaType(named)
	if err == nil {
		if more, ok := types[strings.ToLower(kind)]; ok {
			return kind + more
		}
	}
	return "application/octet-stream"
}
