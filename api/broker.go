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
	Fileless
	source.Files
}

// Fileless is a broker that keeps no files: see WithoutFiles.
type Fileless interface {
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
	// Confirm returns once the replicated state is as new as the call.
	Confirm(ctx context.Context) error
}

// WithoutFiles has a broker answer that it keeps none.
func WithoutFiles(b Fileless) Broker {
	return struct {
		Fileless
		source.NoFiles
	}{Fileless: b}
}

// seen is a broker that shows of jobs what who asks may see.
type seen struct {
	*sight.Rule
	beneath
}

// beneath is the broker itself: what package sight answers goes before.
type beneath struct{ Broker }

var _ Broker = seen{}
