package api

import (
	"context"
	"slices"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

type statusInput struct {
	reads.BlockingQuery
	Hash bool `query:"hash" default:"true" doc:"compute the state's hash; false saves the time"`
}

type quotaInput struct {
	reads.BlockingQuery
	All bool `query:"all" doc:"of all sites"`
}

// federation answers for the federation and for this site in it.
type federation struct {
	broker interface {
		source.State
		source.Federation
		source.Operator
		FilesUse() []node.SpaceUse
	}
	api      *rest.API
	reads    *reads.Reads
	bodies   *transport.Bodies
	contacts Contacts // nil = nobody checks addresses
	id       string   // of the federation, "" = not told
	tokens   holders
}

// register adds the operations.
func (f *federation) register() {
	f.registerReads()
	f.registerPolicy()
	f.registerSite()
	f.registerUserQuotas()
	f.registerContact()
}

func (f *federation) registerReads() {
	reads.Read(f.api, f.reads, "sites", "/v1/sites", "The sites of the federation", reads.Current(f.broker,
		func(_ context.Context, _ *reads.BlockingQuery) (*reads.Answer[wire.List[wire.Site]], error) {
			out := reads.ListOf(f.broker.Sites(), form.Site)
			f.withContacts(out.Body.Items)
			return out, nil
		}))
	reads.Read(f.api, f.reads, "queue", "/v1/queue", "What waits, per owner, with the priorities now", reads.Current(f.broker,
		func(_ context.Context, _ *reads.BlockingQuery) (*reads.Answer[wire.List[wire.Queue]], error) {
			return reads.ListOf(f.broker.Queue(), form.Queue), nil
		}))
	reads.Read(f.api, f.reads, "quota", "/v1/quota", "What this site uses of its quotas, or each site", reads.Current(f.broker, f.quotas))
	reads.Read(f.api, f.reads, "ledger", "/v1/ledger", "Who used how much of whose machines",
		reads.Current(f.broker, func(_ context.Context, _ *reads.BlockingQuery) (*reads.Answer[wire.Ledger], error) {
			return &reads.Answer[wire.Ledger]{Body: form.Ledger(f.broker.Ledger())}, nil
		}))
	reads.Read(f.api, f.reads, "plausibility", "/v1/plausibility", "What stands out of what sites report and nobody can prove, as this broker has seen it since its start",
		reads.Current(f.broker, func(_ context.Context, _ *reads.FreshQuery) (*reads.Answer[wire.Plausibility], error) {
			return &reads.Answer[wire.Plausibility]{Body: form.Plausibility(f.broker.Plausibility())}, nil
		}))
	reads.Read(f.api, f.reads, "policy", "/v1/policy", "The federation's policy",
		reads.Current(f.broker, func(_ context.Context, _ *reads.FreshQuery) (*reads.Answer[wire.Policy], error) {
			return &reads.Answer[wire.Policy]{Body: f.policy()}, nil
		}))
	reads.Read(f.api, f.reads, "status", "/v1/status", "This broker's view of itself and the federation", func(ctx context.Context, in *statusInput) (*reads.Answer[wire.Status], error) {
		out := &reads.Answer[wire.Status]{Body: form.Status(f.broker.Status(in.Hash), f.drainOf(ctx), in.Hash)}
		out.Body.Unreached = f.unreached()
		for _, use := range f.broker.FilesUse() {
			out.Body.Files = append(out.Body.Files, wire.SpaceUse{
				Space: use.Space, Bytes: use.Bytes, MaxBytes: use.Max, Promised: use.Promised, Blobs: use.Blobs,
			})
		}
		return out, nil
	})
}

// quotas returns this site's, or all sites'.
func (f *federation) quotas(_ context.Context, in *quotaInput) (*reads.Answer[wire.List[wire.SiteQuotas]], error) {
	all := f.broker.Quotas()
	if !in.All {
		all = slices.DeleteFunc(all, func(v fsm.QuotaView) bool { return v.Site != f.broker.Site() })
	}
	return reads.ListOf(all, form.Quotas), nil
}
