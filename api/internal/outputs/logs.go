package outputs

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// logs streams one attempt's output. The header goes out before the first
// byte, so that a follower knows that it is connected.
func (o *Outputs) logs(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	if query := r.URL.Query(); query.Has("tasks") || query.Has("state") || query.Has("all") {
		return o.manyLogs(w, r, param)
	}
	q, err := logQuery(r, param("id"))
	if err != nil {
		return err
	}
	tail, err := queryTail(r)
	if err != nil {
		return err
	}
	ctx, cancel := o.stop.Until(r.Context())
	defer cancel()
	body, index, err := o.openLog(ctx, q)
	if err == nil && tail > 0 {
		body, err = o.cutToTail(ctx, body, q, tail)
	}
	if err != nil {
		return err
	}
	if index != "" {
		w.Header().Set(wire.HeaderIndex, index)
	}
	o.sendLogs(ctx, w, body, q)
	return nil
}

// OpenAnywhere opens a log wherever it is, for this broker itself.
func (o *Outputs) OpenAnywhere(ctx context.Context, q node.LogQuery) (io.ReadCloser, error) {
	return (&manyLogs{of: o, r: ownRequest()}).open(ctx, q)
}

// openLog opens a log that this broker has, or that is found at another one; the
// index is then that broker's.
func (o *Outputs) openLog(ctx context.Context, q node.LogQuery) (body io.ReadCloser, index string, err error) {
	body, err = o.broker.Logs(ctx, q)
	var anywhere *node.AnywhereError
	if !errors.As(err, &anywhere) {
		return body, "", err
	}
	if anywhere.Query.Attempt == 0 {
		return o.openNewest(ctx, anywhere)
	}
	found, err := o.search(ctx, anywhere)
	if err != nil {
		return nil, "", err
	}
	return found.body, found.index, nil
}

// sendLogs answers with a log until it or ctx ends.
func (o *Outputs) sendLogs(ctx context.Context, w http.ResponseWriter, body io.ReadCloser, q node.LogQuery) {
	defer body.Close()
	defer context.AfterFunc(ctx, func() { _ = body.Close() })() // wakes a reader that waits for more

	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if err := stream(w, body); err != nil {
		if ctx.Err() == nil { // else the client has gone, or this broker stops
			o.log.Warn().Err(err).Str("job", q.Job.String()).Uint32("task", q.Task).Msg("log stream broke off")
		}
		panic(http.ErrAbortHandler) // a cut connection: the client must not take it for the whole
	}
}

func logQuery(r *http.Request, id string) (q node.LogQuery, err error) {
	if q.Job, err = command.ParseJobID(id); err != nil {
		return q, err
	}
	task, err := rest.QueryUint(r, "task", 0, 0, command.MaxCount-1)
	if err != nil {
		return q, err
	}
	attempt, err := rest.QueryUint(r, "attempt", 0, 1, math.MaxUint32)
	if err != nil && r.URL.Query().Get("attempt") != "" { // "attempt=" is the latest
		return q, err
	}
	if q.Follow, err = rest.QueryBool(r, "follow"); err != nil {
		return q, err
	}
	q.Here = r.Header.Get(wire.HeaderHere) != ""
	q.Task, q.Attempt, q.Stream = uint32(task), uint32(attempt), r.URL.Query().Get("stream")
	switch q.Stream {
	case "":
		q.Stream = "stdout"
	case "stdout", "stderr":
	default:
		return q, problem.BadQuery("stream", q.Stream, "must be stdout or stderr")
	}
	return q, nil
}

// stream copies what comes as it comes.
func stream(w http.ResponseWriter, body io.Reader) error {
	out := http.NewResponseController(w)
	if err := out.Flush(); err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return werr
			}
			if ferr := out.Flush(); ferr != nil {
				return ferr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
