package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

const pathQuotas = "/v1/quotas"

// registerUserQuotas adds the quotas of this site's users. They hold at this site alone, so no other broker is asked.
func (f *federation) registerUserQuotas() {
	f.api.Handle(huma.Operation{
		OperationID: "quotas", Method: http.MethodGet, Path: pathQuotas,
		Summary: "What users of this site use of their quotas: all of them to the operator, to a user the own",
		Responses: f.api.Responses(http.StatusOK, wire.TypeJSON, f.api.Schema(wire.List[wire.UserQuota]{}), 400, 403,
			503),
	}, f.userQuotas)
	f.api.Handle(huma.Operation{
		OperationID: "set-quotas", Method: http.MethodPut, Path: pathQuotas + "/{user}",
		Summary:     "Change the quotas of a user of this site",
		Description: "They hold at once, for jobs that come from now on. Fields left out keep their value.",
		Parameters: []*huma.Param{{
			Name: "user", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: "or *: all users that have no limits of their own",
		}},
		RequestBody: &huma.RequestBody{
			Required: true,
			Content:  map[string]*huma.MediaType{wire.TypeJSON: {Schema: f.api.Schema(wire.UserLimitsRequest{})}},
		},
		Responses: f.api.Responses(http.StatusOK, wire.TypeJSON, f.api.Schema(wire.UserQuota{}), 400, 403, 413, 415,
			422, 429, 503),
	}, f.setUserQuotas)
}

func (f *federation) userQuotas(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	list, err := f.broker.Users(r.Context())
	if err != nil {
		return err
	}
	who := node.AskerOf(r.Context())
	out := wire.List[wire.UserQuota]{Items: []wire.UserQuota{}}
	switch {
	case who.Operator:
		for i := range list {
			out.Items = append(out.Items, formUserQuota(list[i]))
		}
	case who.User != "":
		out.Items = append(out.Items, formUserQuota(useOf(list, who.User)))
	}
	w.Header().Set("Cache-Control", "no-store")
	return rest.WriteJSON(w, http.StatusOK, out)
}

func (f *federation) setUserQuotas(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	user := param("user")
	if err := node.CheckLimitsUser(user); err != nil {
		return problem.BadField("user", user, err.Error())
	}
	var in wire.UserLimitsRequest
	if err := rest.ReadObject(w, r, f.bodies, &in); err != nil {
		return err
	}
	change := node.UserLimitsChange{
		Tasks: in.Tasks, MilliCPU: in.MilliCPU, Bytes: in.Bytes, JobsPerMinute: in.JobsPerMinute,
		Shares: in.Shares, Clear: in.Clear,
	}
	if change == (node.UserLimitsChange{}) {
		return problem.BadField("tasks", "", "nothing is to change: give tasks, milli_cpu, bytes, jobs_per_minute, shares or clear")
	}
	note, err := f.unknown(r.Context(), user)
	if err != nil {
		return err
	}
	if err = f.broker.SetUserLimits(r.Context(), user, change); err != nil {
		return err
	}
	list, err := f.broker.Users(r.Context())
	if err != nil {
		return err
	}
	out := formUserQuota(useOf(list, user))
	out.Note = note
	w.Header().Set("Cache-Control", "no-store")
	return rest.WriteJSON(w, http.StatusOK, out)
}

// useOf returns a user's line; one that has used nothing has the limits of everybody.
func useOf(list []node.UserUse, user string) node.UserUse {
	out := node.UserUse{User: user, From: node.LimitsOfEverybody}
	for i := range list {
		switch list[i].User {
		case user:
			return list[i]
		case node.EveryUser:
			out.Limits = list[i].Limits
		}
	}
	return out
}

func formUserQuota(u node.UserUse) wire.UserQuota {
	return wire.UserQuota{
		User: u.User, From: u.From, Own: u.Own, Limits: wire.UserLimits(u.Limits),
		Tasks: u.Tasks, MilliCPU: u.MilliCPU, Bytes: u.Bytes, Held: u.Held, CoreSeconds: u.CoreSeconds,
	}
}
