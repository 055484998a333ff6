// Package api serves HTTP: step 1 of a job's way. It never imports a coordination backend or a handler.
package api

import (
	"context"

	"github.com/cloudshare/cloudshare/api/internal/sight"
	"github.com/cloudshare/cloudshare/api/internal/source"
)

// Broker is what the API needs of the broker it stands before. Errors wrap
// node's documented ones or, of files, package store's, or are a *node.ElsewhereError.
type Broker interface {
	source.State
	source.Feed
	source.Jobs
	source.Submissions
	source.Whys
	source.Owners
	source.Outputs
	source.Federation
	source.Operator
	source.Roster
	source.Health
	source.Files
	source.Attachments
	source.Awaiting
	// Confirm returns once the replicated state is as new as the call.
	Confirm(ctx context.Context) error
}

// seen is a broker that shows of jobs what who asks may see.
type seen struct {
	*sight.Rule
	beneath
}

// beneath is the broker itself: what package sight answers goes before.
type beneath struct{ Broker }

var _ Broker = seen{}
