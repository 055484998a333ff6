package api

import (
	"context"
	"slices"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
)

type statusInput struct {
	BlockingQuery
	Hash bool `query:"hash" default:"true" doc:"compute the state's hash; false saves the time"`
}

type quotaInput struct {
	BlockingQuery
	All bool `query:"all" doc:"of all sites"`
}

// federation answers for the federation and for this site in it.
type federation struct {
	broker interface {
		source.State
		source.Federation
		source.Operator
	}
	api      *rest.API
	reads    *reads
	bodies   *transport.Bodies
	contacts Contacts // nil = nobody checks addresses
	id       string   // of the federation, "" = not told
}

// register adds the operations.
func (f *federation) register() {
	f.registerReads()
	f.registerPolicy()
	f.registerSite()
	f.registerContact()
}

func (f *federation) registerReads() {
	read(f.api, f.reads, "sites", "/v1/sites", "The sites of the federation", current(f.broker, func(_ context.Context, _ *BlockingQuery) (*answer[wire.List[wire.Site]], error) {
		out := listOf(f.broker.Sites(), siteOf)
		f.withContacts(out.Body.Items)
		return out, nil
	}))
	read(f.api, f.reads, "queue", "/v1/queue", "What waits, per owner, with the priorities now", current(f.broker, func(_ context.Context, _ *BlockingQuery) (*answer[wire.List[wire.Queue]], error) {
		return listOf(f.broker.Queue(), queueOf), nil
	}))
	read(f.api, f.reads, "quota", "/v1/quota", "What this site uses of its quotas, or each site", current(f.broker, f.quotas))
	read(f.api, f.reads, "ledger", "/v1/ledger", "Who used how much of whose machines", current(f.broker, func(_ context.Context, _ *BlockingQuery) (*answer[wire.Ledger], error) {
		return &answer[wire.Ledger]{ledgerOf(f.broker.Ledger())}, nil
	}))
	read(f.api, f.reads, "policy", "/v1/policy", "The federation's policy", current(f.broker, func(_ context.Context, _ *FreshQuery) (*answer[wire.Policy], error) {
		return &answer[wire.Policy]{f.policy()}, nil
	}))
	read(f.api, f.reads, "status", "/v1/status", "This broker's view of itself and the federation", func(ctx context.Context, in *statusInput) (*answer[wire.Status], error) {
		out := &answer[wire.Status]{statusOf(f.broker.Status(in.Hash), f.drainOf(ctx), in.Hash)}
		out.Body.Unreached = f.unreached()
		return out, nil
	})
}

// quotas are this site's, or all sites'.
func (f *federation) quotas(_ context.Context, in *quotaInput) (*answer[wire.List[wire.SiteQuotas]], error) {
	all := f.broker.Quotas()
	if !in.All {
		all = slices.DeleteFunc(all, func(v fsm.QuotaView) bool { return v.Site != f.broker.Site() })
	}
	return listOf(all, quotasOf), nil
}
