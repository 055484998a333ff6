// Package members answers who the members of the federation are, lets sites in by invitation, and takes motions and
// votes of this broker's site.
package members

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// Broker is what members need of the broker that they stand before.
type Broker interface {
	source.State
	source.Roster
	Params() command.Params
}

// Config of Members; all fields are required.
type Config struct {
	Broker Broker
	API    *rest.API
	Reads  *reads.Reads
	Bodies *transport.Bodies
}

// Members answers for one broker.
type Members struct {
	broker Broker
	api    *rest.API
	reads  *reads.Reads
	bodies *transport.Bodies
}

// New makes Members; Register adds their operations to the API.
func New(c Config) *Members { return &Members{c.Broker, c.API, c.Reads, c.Bodies} }

// Register adds the operations.
func (m *Members) Register() {
	reads.Read(m.api, m.reads, "members", "/v1/members", "Who the members of the federation are, by admission",
		reads.Current(m.broker, m.members))
	reads.Read(m.api, m.reads, "invitations", "/v1/invitations", "Invitations that are kept, the oldest first",
		reads.Current(m.broker, m.invitations))
	reads.Read(m.api, m.reads, "motions", "/v1/motions", "What the electors decide or have decided, the oldest first",
		reads.Current(m.broker, m.motions))
	m.registerInvite()
	m.registerMotions()
	m.write(huma.Operation{
		OperationID: "replace-key", Method: http.MethodPost, Path: "/v1/members/{site}/key", Summary: "Replace a member's key",
		Description: "Any member's broker takes it: it is signed by the site's present key or by its recovery key.",
		Parameters:  []*huma.Param{siteParam()},
	}, http.StatusOK, wire.KeyRequest{}, wire.Member{}, m.replaceKey)
}

// all asks for a whole list.
type all = reads.BlockingQuery

func (m *Members) members(context.Context, *all) (*reads.Answer[wire.List[wire.Member]], error) {
	return reads.ListOf(m.broker.Members(), form.Member), nil
}

func (m *Members) invitations(context.Context, *all) (*reads.Answer[wire.List[wire.Invitation]], error) {
	return reads.ListOf(m.broker.Invitations(), form.Invitation), nil
}

type motionsInput struct {
	reads.BlockingQuery
	State string `query:"state" enum:"open,passed,rejected,withdrawn,void,expired" doc:"only those in this state"`
}

func (m *Members) motions(_ context.Context, in *motionsInput) (*reads.Answer[wire.List[wire.Motion]], error) {
	var some []node.Motion
	for _, x := range m.broker.Motions() {
		if in.State == "" || x.State == in.State {
			some = append(some, x)
		}
	}
	return reads.ListOf(some, form.Motion), nil
}

// write registers an operation that changes something; in is what it takes, nil for nothing.
func (m *Members) write(op huma.Operation, ok int, in, out any, h rest.Handler) {
	problems := []int{400, 403, 404, 409, 422, 429, 503}
	if in != nil {
		op.RequestBody = &huma.RequestBody{
			Required: true, Content: map[string]*huma.MediaType{wire.TypeJSON: {Schema: m.api.Schema(in)}},
		}
		problems = append(problems, 413, 415)
	}
	op.Responses = m.api.Responses(ok, wire.TypeJSON, m.api.Schema(out), problems...)
	m.api.Handle(op, func(w http.ResponseWriter, r *http.Request, param func(string) string) error {
		if err := m.broker.Current(); err != nil {
			return err
		}
		return h(w, r, param)
	})
}

func siteParam() *huma.Param {
	return &huma.Param{
		Name: "site", In: "path", Required: true, Description: "a site's name", Schema: &huma.Schema{Type: huma.TypeString},
	}
}
