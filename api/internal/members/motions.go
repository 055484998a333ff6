package members

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/identity"
)

func (m *Members) registerMotions() {
	m.write(huma.Operation{
		OperationID: "propose", Method: http.MethodPost, Path: "/v1/motions", Summary: "Propose something to the electors",
		Description: "It passes once more than half of them agree; the proposer's vote counts, if it has one. " +
			"The answer is the motion as it stands: it may have passed at once.",
	}, http.StatusAccepted, wire.MotionRequest{}, wire.Motion{}, m.propose)
	m.write(huma.Operation{
		OperationID: "vote", Method: http.MethodPut, Path: "/v1/motions/{motion}/vote", Summary: "Vote on a motion",
		Description: "The vote of this broker's site. It may be changed until the motion is decided.",
		Parameters: []*huma.Param{{
			Name: "motion", In: "path", Required: true, Description: "its number, or the site that no other open motion is about",
			Schema: &huma.Schema{Type: huma.TypeString},
		}},
	}, http.StatusOK, wire.VoteRequest{}, wire.Motion{}, m.vote)
}

// proposal is wire.MotionRequest, whose params are read on top of the policy as it is.
type proposal struct {
	What   string          `json:"what"`
	Site   string          `json:"site"`
	Key    string          `json:"key"`
	Params json.RawMessage `json:"params"`
}

func (m *Members) propose(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	var in proposal
	if err := rest.ReadObject(w, r, m.bodies, &in); err != nil {
		return err
	}
	c, err := m.motionOf(&in)
	if err != nil {
		return err
	}
	return answer(w, http.StatusAccepted)(m.broker.Propose(r.Context(), c))
}

// motionOf reads what is proposed; what does not fit together is refused before anybody decides.
func (m *Members) motionOf(in *proposal) (*command.Motion, error) {
	c := &command.Motion{Site: in.Site}
	for k := command.MotionElector; k <= command.LastMotion; k++ {
		if k.String() == in.What {
			c.What = k
		}
	}
	policy := c.What == command.MotionPolicy
	switch {
	case c.What == 0:
		return nil, problem.BadField("what", in.What, "must be ban, unban, elector, no-elector, rebind, policy or forget")
	case policy && in.Site != "":
		return nil, problem.BadField("site", in.Site, "a policy is about no site: leave it out")
	case !policy && !command.ValidSite(in.Site):
		return nil, problem.BadField("site", in.Site, "must be a member's name")
	case !policy && in.Params != nil:
		return nil, problem.BadField("params", "", "is of a policy only")
	case c.What != command.MotionRebind && in.Key != "":
		return nil, problem.BadField("key", "", "is of rebind only")
	case c.What == command.MotionRebind:
		key, err := identity.ParsePublic(in.Key)
		if err != nil {
			return nil, problem.BadField("key", "", err.Error()) // it may be a secret one
		}
		c.Key = signature.Key(key)
	case policy:
		params, err := m.paramsOf(in.Params)
		if err != nil {
			return nil, err
		}
		c.Params = &params
	}
	return c, nil
}

func (m *Members) paramsOf(text json.RawMessage) (p command.Params, err error) {
	policy := form.Policy(m.broker.Params(), 0)
	if err = rest.DecodeKnown(text, &policy); err != nil {
		return p, problem.BadField("params", "", strings.TrimPrefix(err.Error(), "json: ")+"; GET /v1/policy shows the fields")
	}
	return form.Params(policy)
}

func (m *Members) vote(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	var in wire.VoteRequest
	if err := rest.ReadObject(w, r, m.bodies, &in); err != nil {
		return err
	}
	if in.Yes == nil {
		return problem.BadField("yes", "", "must be true or false")
	}
	return answer(w, http.StatusOK)(m.broker.Vote(r.Context(), param("motion"), *in.Yes))
}

// answer shows a motion.
func answer(w http.ResponseWriter, status int) func(node.Motion, error) error {
	return func(m node.Motion, err error) error {
		if err != nil {
			return err
		}
		return rest.WriteJSON(w, status, form.Motion(m))
	}
}

func (m *Members) replaceKey(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	var in wire.KeyRequest
	if err := rest.ReadObject(w, r, m.bodies, &in); err != nil {
		return err
	}
	c, more, err := command.Decode(in.Rekey)
	if err != nil || len(more) > 0 {
		return problem.BadField("rekey", "", "is no command that cloudshare key has made")
	}
	body, ok := c.Body.(*command.Rekey)
	if !ok || body.Site != param("site") {
		return problem.BadField("rekey", "", "replaces no key of site "+problem.OneLine(param("site")))
	}
	after, err := m.broker.Rekey(r.Context(), body)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, form.Member(after))
}
