// Package api serves HTTP: step 1 of a job's way. It never imports a coordination backend or a handler.
package api

import (
	"context"

	"github.com/cloudshare/cloudshare/api/internal/source"
)

// Broker is what the API needs of the broker it stands before. Errors wrap
// node's documented ones, or are a *node.ElsewhereError.
type Broker interface {
	source.State
	source.Feed
	source.Jobs
	source.Submissions
	source.Whys
	source.Outputs
	source.Federation
	source.Operator
	source.Roster
	source.Health
	// Confirm returns once the replicated state is as new as the call.
	Confirm(ctx context.Context) error
}
