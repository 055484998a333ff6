package sitecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// member is a broker of "site-2" or of another site: it shows one list of sites
// after the other, the last one forever.
func member(t *testing.T, lists ...string) *httptest.Server {
	t.Helper()
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"site":"site-2"}`) })
	mux.HandleFunc("POST /v1/leave", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"leaving":true}`)
	})
	mux.HandleFunc("GET /v1/sites", func(w http.ResponseWriter, _ *http.Request) {
		n := min(int(asked.Add(1)), len(lists))
		fmt.Fprintf(w, `{"items":[%s],"next":""}`, lists[n-1])
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// site2 as the list of sites shows it.
func site2(state string, assigned, home float64) string {
	text, _ := json.Marshal(wire.Site{
		ID: "site-2", State: state, Assigned: wire.Resources{CPU: assigned},
		Home: wire.Resources{CPU: home},
	})
	return string(text)
}

// site1 is the other member.
func site1(srv *httptest.Server) string {
	text, _ := json.Marshal(wire.Site{ID: "site-1", State: "alive", Addresses: wire.Addresses{HTTP: strings.TrimPrefix(srv.URL, "http://")}})
	return string(text)
}

// TestLeaveWaits tells each change, and ends with the site's departure.
func TestLeaveWaits(t *testing.T) {
	srv := member(t, site2("alive", 2, 1), site2("alive", 2, 1), site2("alive", 0, 1), site2("left", 0, 0))
	code, out, errs := runCLI(t, "", "leave", "--addr", srv.URL)
	const want = `site-2 leaves; 2 cores still run for the federation, 1 at home
site-2 leaves; 0 cores still run for the federation, 1 at home
`
	if code != 0 || strings.Join(strings.Fields(out), " ") != "site-2 left" || errs != want {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}

// TestLeaveOfBrokerThatEnds: the broker's end may be seen before its departure
// is; then the other sites know whether it left.
func TestLeaveOfBrokerThatEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		lists []string // of the other site; none: it does not answer
		gone  time.Duration
		err   string
	}{
		{"left", []string{site2("alive", 0, 0), site2("left", 0, 0)}, time.Minute, ""},
		{"fell", []string{site2("alive", 0, 0), site2("suspect", 0, 0)}, 100 * time.Millisecond, "ended before the site left"},
		{"last", nil, time.Minute, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := member(t, c.lists...)
			if c.lists == nil {
				other.Close()
			}
			own := member(t, site2("alive", 1, 0)+","+site1(other))
			var notes bytes.Buffer
			l := leaving{
				App: &cli.App{Streams: cli.Streams{Err: &notes}}, site: "site-2", poll: time.Millisecond,
				gone: c.gone,
			}
			cl, err := client.New(own.URL)
			if err != nil {
				t.Fatal(err)
			}
			sites, err := cl.Sites(t.Context())
			if err != nil || l.showProgress(sites.Items) != "alive" {
				t.Fatalf("%+v %v", sites, err)
			}
			own.Close()
			if err = l.wait(t.Context(), cl); c.err == "" && err != nil || c.err != "" &&
				(err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

// TestLeaveInterrupted: Ctrl-C ends the waiting.
func TestLeaveInterrupted(t *testing.T) {
	srv := member(t, site2("alive", 1, 0))
	ctx, stop := context.WithCancel(t.Context())
	var errs bytes.Buffer
	noted := writer(func(p []byte) { errs.Write(p); stop() })
	code := runWith(ctx, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: noted}, "leave", "--addr", srv.URL)
	if code != cli.ExitError || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// writer calls itself with what is written.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
