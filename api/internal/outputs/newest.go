package outputs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// newestGrace is how long the other sites are waited for once something was found of each
// task: one of them may have a later attempt. What does not answer by then is likely away.
const newestGrace = time.Second

// survey is what the sites say of the newest output of some tasks of a job.
type survey struct {
	best   map[uint32]keptAt // by position
	found  int               // of them that have an output
	missed []finding         // sites that could not be asked
}

// keptAt is the best that is known of one task's output.
type keptAt struct {
	node.KeptOutput
	at *node.ElsewhereError // whose it is; nil = this broker's
}

// site returns whose broker has it; own is this one's.
func (k *keptAt) site(own string) string {
	if k.at == nil {
		return own
	}
	return k.at.Site
}

// survey asks this broker and those of the other sites that may have run a job for the
// newest outputs of tasks: one question to each site, peers.Width at a time, for
// PeerTimeout in all.
func (o *Outputs) survey(ctx context.Context, job command.JobID, positions []uint32) (*survey, error) {
	v := &survey{best: map[uint32]keptAt{}}
	for _, k := range o.broker.KeptOutputs(job, positions) {
		v.add(keptAt{k, nil})
	}
	asking, hangUp := context.WithTimeout(ctx, o.peers.Timeout())
	defer hangUp()
	leave, err := o.enterSearch(asking, "outputs of job "+job.String())
	if err != nil {
		return nil, err
	}
	defer leave()
	var asked jobspec.Indices
	for _, at := range positions {
		asked.Add(at)
	}
	question := url.URL{Path: "/v1/jobs/" + job.String() + "/kept", RawQuery: url.Values{"tasks": {asked.String()}}.Encode()}
	answers := peers.AskEach(o.broker.MayHaveRun(job), func(site node.ElsewhereError) keptAnswer {
		items, err := o.askKept(asking, question, &site)
		return keptAnswer{site, items, err}
	})
	grace := time.AfterFunc(o.peers.Timeout(), hangUp)
	defer grace.Stop()
	for all := false; ; {
		if !all && v.found == len(positions) {
			all = true
			grace.Reset(newestGrace)
		}
		a, more := <-answers
		if !more {
			return v, ctx.Err()
		}
		v.addAnswer(&a, asked)
	}
}

// keptAnswer is what one broker said.
type keptAnswer struct {
	site  node.ElsewhereError
	items []wire.Kept
	miss  error
}

// askKept asks one broker for the outputs that it has itself.
func (o *Outputs) askKept(ctx context.Context, question url.URL, at *node.ElsewhereError) ([]wire.Kept, error) {
	res, err := o.peers.Ask(ctx, http.MethodGet, at, question, peers.MaxHops, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body := io.LimitReader(res.Body, peers.MaxAnswer)
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(body, 64<<10))
		return nil, hasNot(at, res.StatusCode, b)
	}
	var page wire.List[wire.Kept]
	if err = json.NewDecoder(body).Decode(&page); err != nil {
		return nil, fmt.Errorf("its broker at %s broke off", at.Peer)
	}
	return page.Items, nil
}

// addAnswer adds what one broker said of the tasks that it was asked for.
func (v *survey) addAnswer(a *keptAnswer, asked jobspec.Indices) {
	if a.miss != nil {
		v.missed = append(v.missed, finding{site: a.site.Site, miss: a.miss})
		return
	}
	for i := range a.items {
		k := &a.items[i]
		if !asked.Has(k.Task) {
			continue
		}
		kept, ok := keptHere(k)
		if !ok {
			v.missed = append(v.missed, finding{site: a.site.Site, miss: errors.New("its broker at " + a.site.Peer + " answers what does not read")})
			return
		}
		v.add(keptAt{kept, &a.site})
	}
}

// add keeps the latest attempt, or else what leaves more to hope for.
func (v *survey) add(k keptAt) {
	best, known := v.best[k.Position]
	switch {
	case k.Attempt > best.Attempt:
		if best.Attempt == 0 {
			v.found++
		}
	case !known, best.Attempt == 0 && k.Err != nil && problem.Of(k.Err).Status > problem.Of(best.Err).Status:
	default:
		return
	}
	v.best[k.Position] = k
}

// of returns where a task's newest output is, or an error that says why none can be read.
// If last is known, the output of an earlier attempt does not count.
func (v *survey) of(position, last uint32, what string) (keptAt, error) {
	k := v.best[position]
	switch {
	case k.Attempt >= max(last, 1):
		return k, nil
	case k.Err != nil && problem.Of(k.Err).Status == http.StatusServiceUnavailable:
		return k, k.Err
	case len(v.missed) > 0:
		return k, notAsked(what, v.missed)
	case k.Err != nil:
		return k, k.Err
	}
	return k, fmt.Errorf("%s is at no site of the federation: none was written, or it was removed long ago: %w", what, node.ErrNotFound)
}

// openNewest opens the newest output that any site has of a task.
func (o *Outputs) openNewest(ctx context.Context, e *node.AnywhereError) (body io.ReadCloser, index string, err error) {
	v, err := o.survey(ctx, e.Query.Job, []uint32{e.Query.Task})
	if err != nil {
		return nil, "", err
	}
	k, err := v.of(e.Query.Task, 0, e.What)
	if err != nil {
		return nil, "", err
	}
	return o.openKept(ctx, e.Query, &k, 0)
}

// openKept opens an output where a survey has found it; of more than tail lines, if that
// is not 0, the last ones.
func (o *Outputs) openKept(
	ctx context.Context, q node.LogQuery, k *keptAt, tail int,
) (body io.ReadCloser, index string, err error) {
	q.Task, q.Attempt, q.Follow, q.Here = k.Position, k.Attempt, false, true
	if k.at == nil {
		body, err = o.broker.Logs(ctx, q)
		if err == nil && tail > 0 {
			body, err = o.cutToTail(ctx, body, q, tail)
		}
		return body, "", err
	}
	log, err := o.askOne(ctx, ctx, question(q, tail), *k.at)
	var p *problem.Problem
	var later *notNow
	switch {
	case err == nil:
		return log.body, log.index, nil
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case errors.As(err, &p):
		return nil, "", p
	case errors.As(err, &later):
		return nil, "", later.problem
	case errors.Is(err, errHasNot):
		return nil, "", fmt.Errorf("site %s has just removed it: %w", k.at.Site, node.ErrOutputGone)
	}
	return nil, "", problem.Unreachable(k.at, err.Error())
}
