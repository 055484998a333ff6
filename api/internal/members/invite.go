package members

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// invitedFor is how long an invitation stands if nobody says.
const invitedFor = 24 * time.Hour

func (m *Members) registerInvite() {
	m.write(huma.Operation{
		OperationID: "invite", Method: http.MethodPost, Path: "/v1/invitations", Summary: "Invite a site",
		Description: "The answer holds the text that lets the site in, once; it is told to nobody else, and kept nowhere. " +
			"The electors agree by approving its motion, before or after the text is used.",
	}, http.StatusCreated, wire.InviteRequest{}, wire.Invited{}, m.invite)
	m.write(huma.Operation{
		OperationID: "revoke", Method: http.MethodDelete, Path: "/v1/invitations/{site}", Summary: "Revoke the open invitations of a site",
		Description: "Those that this broker's site has made; an elector's revokes any.",
		Parameters:  []*huma.Param{siteParam()},
	}, http.StatusOK, nil, wire.List[wire.Invitation]{}, m.revoke)
}

func (m *Members) invite(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	var in wire.InviteRequest
	if err := rest.ReadObject(w, r, m.bodies, &in); err != nil {
		return err
	}
	within := invitedFor
	if in.For != "" {
		var err error
		within, err = jobspec.ParseDuration(in.For)
		if err != nil || within < time.Second || within > command.MaxInvitationMs*time.Millisecond {
			return problem.BadField("for", in.For, "must be a duration from 1s to 30d, e.g. 24h or 1w")
		}
	}
	if !command.ValidSite(in.Site) {
		return problem.BadField("site", in.Site, "must be a lower-case DNS label, e.g. lab-2")
	}
	v, err := m.text(r.Context(), &in, within)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store") // it holds a secret
	return rest.WriteJSON(w, http.StatusCreated, wire.Invited{
		Token: v.Token, Addresses: v.Addresses, Invitation: form.Invitation(v.Invitation),
	})
}

// text makes an invitation, or a text for a member.
func (m *Members) text(ctx context.Context, in *wire.InviteRequest, within time.Duration) (node.Invited, error) {
	switch {
	case !in.Again:
		return m.broker.Invite(ctx, in.Site, in.Vote == nil || *in.Vote, within)
	case in.Vote != nil || in.For != "":
		return node.Invited{}, problem.BadField("again", "true", "vote and for are of a site that is no member yet: leave them out")
	}
	return m.broker.Reinvite(in.Site)
}

func (m *Members) revoke(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	ended, err := m.broker.Revoke(r.Context(), param("site"))
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, reads.ListOf(ended, form.Invitation).Body)
}
