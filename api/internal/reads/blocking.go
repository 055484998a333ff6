package reads

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// MaxWait bounds a blocking read. That is a read with ?index=N: it is answered once something has
// happened after entry N, or after ?wait= (default and most MaxWait), whichever
// is first; one of a single job, once something has happened to that job. N is
// the X-CloudShare-Index of an earlier answer. What happens to home jobs moves no
// entry: it is counted by X-CloudShare-Home and ?home=.
const MaxWait = 5 * time.Minute

// WaitPath is answered late, by other brokers too.
const WaitPath = "/v1/wait"

// IsBlocking reports whether a request, here or passed on, may be answered so late.
func IsBlocking(r *http.Request) bool { return r.URL.Path == WaitPath || r.URL.Query().Has("index") }

// BlockingQuery are the parameters of a blocking read, for huma's reads.
type BlockingQuery struct {
	Index uint64 `query:"index" doc:"answer once something has happened after this entry"`
	Home  uint64 `query:"home" doc:"or, to this site's home jobs, after this X-CloudShare-Home; default now"`
	Wait  string `query:"wait" maxLength:"20" doc:"or after this time, e.g. 30s; default and most 5m"`
	FreshQuery
}

// BlockingParams returns the same for operations on the bare exchange.
func BlockingParams() []*huma.Param {
	return []*huma.Param{
		rest.QueryParam("index", huma.TypeInteger, "answer once something has happened after this entry"),
		rest.QueryParam("home", huma.TypeInteger, "or, to this site's home jobs, after this X-CloudShare-Home; default now"),
		rest.QueryParam("wait", huma.TypeString, "or after this time, e.g. 30s; default and most 5m"),
		rest.QueryParam(staleParam, huma.TypeString, staleDoc),
	}
}

// Await holds a blocking read back, of a job or (the zero id) of everything, and
// notes how far the state is that it will show.
func (v *Reads) Await(w http.ResponseWriter, r *http.Request, job command.JobID) error {
	after, home, wait, err := v.WaitQuery(r)
	if err == nil {
		err = v.requireFresh(r)
	}
	if err != nil {
		return err
	}
	if after > 0 {
		ctx, leave, err := v.Stay(r.Context())
		if err != nil {
			return err
		}
		ctx, done := context.WithTimeout(ctx, wait)
		v.awaitEvent(ctx, after, home, job)
		done()
		leave()
		if err := problem.Ended(r.Context()); err != nil {
			return err
		}
		if err := v.requireFresh(r); err != nil {
			return err
		}
		v.Restamp(r.Context())
	}
	v.setIndexHeaders(w)
	return nil
}

// awaitEvent returns when something has happened, or when it took too long: the
// answer shows what is.
func (v *Reads) awaitEvent(ctx context.Context, after, home uint64, job command.JobID) {
	if job.Num == 0 || after > v.broker.Index() {
		_ = v.broker.Feed().AwaitMove(ctx, after, home)
		return
	}
	from := node.AfterEntry(after)
	from.Home = home
	_, _ = v.broker.Events(from, node.EventFilter{Job: job}).Next(ctx) // an error says: look at once
}

// setIndexHeaders sets the headers from which a blocking read goes on. They must be read
// before the state is: what happens in between is then seen twice, not missed.
func (v *Reads) setIndexHeaders(w http.ResponseWriter) {
	_, home := v.broker.Feed().Moved()
	w.Header().Set(wire.HeaderIndex, strconv.FormatUint(v.broker.Index(), 10))
	w.Header().Set(wire.HeaderHome, strconv.FormatUint(home, 10))
}

// WaitQuery reads a blocking read's parameters; after is 0 for a plain one.
func (v *Reads) WaitQuery(r *http.Request) (after, home uint64, wait time.Duration, err error) {
	const most = 1<<64 - 1
	if r.URL.RawQuery == "" {
		return 0, 0, 0, nil
	}
	if after, err = rest.QueryUint(r, "index", 0, 0, most); err != nil {
		return 0, 0, 0, err
	}
	_, now := v.broker.Feed().Moved()
	if home, err = rest.QueryUint(r, "home", now, 0, most); err != nil {
		return 0, 0, 0, err
	}
	wait = MaxWait
	if text := r.URL.Query().Get("wait"); text != "" {
		wait, err = time.ParseDuration(text)
		if err != nil || wait < 0 || wait > MaxWait {
			return 0, 0, 0, problem.BadQuery("wait", text, "must be a duration up to 5m, e.g. 30s")
		}
	}
	return after, home, wait, nil
}
