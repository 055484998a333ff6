package rest

import (
	"context"
	"strings"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Note is what the record of who did what is told of a request beside its path. Its handler writes it before the answer
// goes out; one goroutine at a time has it.
type Note struct {
	Asked func() string // what was asked for, in one line; nil = the path says it
	Why   string        // why it was refused, "" = it was not
	// Lines that were refused of a request that is answered line by line. They are known when all is answered.
	Lines uint32
}

type noteKey struct{}

// WithNote returns the context of a request of which something may be noted.
func WithNote(ctx context.Context, n *Note) context.Context {
	return context.WithValue(ctx, noteKey{}, n)
}

// NoteOf returns the note of a request, which nobody reads if there is no record.
func NoteOf(ctx context.Context) *Note {
	if n, ok := ctx.Value(noteKey{}).(*Note); ok {
		return n
	}
	return new(Note)
}

// Refuse notes why a request, or a line of it, was refused.
func (n *Note) Refuse(p *wire.Problem) {
	n.Why = strings.TrimPrefix(p.Type, wire.ProblemPrefix)
	if p.Detail != "" {
		n.Why += ": " + p.Detail
	}
}
