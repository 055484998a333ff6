package tes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/exports"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// submitFor is for how long a request waits until its job is durable, although its client may have left: what was
// accepted must be known here.
const submitFor = 30 * time.Second

// submit makes a job of a task. Inputs that have to come from elsewhere are brought later. What is wrong with a task
// that has a key is said by the core: the key may stand for a job already, whose inputs were here when it was made.
func (t *Tasks) submit(ctx context.Context, body []byte, key string) (answer node.Answer, err error) {
	user := userOf(ctx)
	req := node.Request{Key: key, Meaning: sha256.Sum256(body)}
	err = t.prepare(ctx, body, user, &req)
	if err != nil && (key == "" || ctx.Err() != nil) {
		return answer, err
	}
	if req.Refused = err; err == nil && req.Importing {
		return t.submitLater(ctx, user, req)
	}
	answer = t.Broker.Submit(ctx, []node.Request{req})[0]
	return answer, answer.Err
}

// prepare makes a request of a task, with a place among those that wait for their inputs if it is one of them.
func (t *Tasks) prepare(ctx context.Context, body []byte, user string, req *node.Request) error {
	var p *plan
	err := t.turns.read(ctx, len(body), func() error {
		task, perr := parse(body)
		if perr == nil {
			p, perr = translate(task, user, t.Roots)
		}
		return perr
	})
	if err != nil {
		return err
	}
	if req.Attached, err = p.attached(); err != nil {
		return err
	}
	if p.fetches() {
		if req.Spec, err = t.foresee(ctx, p, user); err != nil {
			return err
		}
		req.Importing = true
		return t.imports.reserve(user)
	}
	inputs, err := t.bringer(user).store(ctx, p)
	if err != nil {
		return err
	}
	req.Spec, err = p.spec(inputs)
	return err
}

// submitLater makes a job that is held until its inputs are here, and has them brought. A place is reserved for it.
func (t *Tasks) submitLater(ctx context.Context, user string, req node.Request) (answer node.Answer, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitFor)
	defer cancel()
	answer = t.Broker.Submit(ctx, []node.Request{req})[0]
	if answer.Err != nil || answer.Replayed {
		t.imports.free(user) // if it is accepted all the same, the next scan finds it
		return answer, answer.Err
	}
	t.imports.begin(answer.ID, user)
	return answer, nil
}

// foresee looks whether a task's inputs may be brought, and returns the job as it is until they have been: without
// them.
func (t *Tasks) foresee(ctx context.Context, p *plan, user string) (spec jobspec.Spec, err error) {
	if _, err = t.Broker.MissingBlobs(user, nil); err != nil {
		return spec, err // no files are kept here
	}
	done, err := t.turns.look(ctx, user)
	if err != nil {
		return spec, err
	}
	defer done()
	inputs, err := p.foreseen()
	if err != nil {
		return spec, err
	}
	whole, err := p.spec(inputs)
	if err != nil {
		return spec, err
	}
	if err = t.Resolve(ctx, &whole); err != nil && !isUnderWay(err) {
		return spec, err
	}
	return p.spec(nil)
}

// foreseen returns the inputs in the words of a job's text as they may be once they are here, with any hash: files of
// this site are looked at, and not read.
func (p *plan) foreseen() (list []map[string]any, err error) {
	sum := int64(0)
	for i := range p.inputs {
		from, in := &p.inputs[i], map[string]any{"path": p.task.Inputs[i].Path}
		switch {
		case from.URL != "":
			in["url"] = from.URL
		case from.Inline:
			in["content"] = from.Content
		case from.Root.Name == "":
			in["sha256"] = anyHash
		case p.task.Inputs[i].Type == typeDirectory:
			err = exports.CheckFolder(from.Root, from.Rel)
			in["manifest"] = anyHash
		default:
			var size int64
			size, err = sizeOf(from)
			sum += size
			in["sha256"] = anyHash
		}
		if err == nil && sum > files.MaxTask {
			err = fmt.Errorf("%w: with those before it makes more than %d bytes for one task", exports.ErrRefused,
				int64(files.MaxTask))
		}
		if err != nil {
			return nil, wordInput(i, err)
		}
		list = append(list, in)
	}
	return list, nil
}

// anyHash stands for that of a file which has not been read.
var anyHash = files.HashOf([]byte("any")).String()

func sizeOf(from *placed) (int64, error) {
	f, err := exports.OpenFile(from.Root, from.Rel)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// isUnderWay reports whether an error is that a file is on its way.
func isUnderWay(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && strings.HasSuffix(p.Type, ":import-under-way")
}
