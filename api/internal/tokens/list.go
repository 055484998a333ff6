package tokens

import (
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/access"
)

const (
	pathAll = "/v1/tokens"
	pathOne = pathAll + "/{id}"
)

func (t *Tokens) registerTokens() {
	api := t.cfg.API
	t.read("tokens", pathAll, "Tokens of this site, also expired ones, the oldest first; never their texts",
		wire.List[wire.Token]{}, t.list)
	api.Handle(huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: pathAll, Summary: "Make a token",
		Description: "The answer holds its text, once; it is told to nobody else, and kept nowhere.",
		RequestBody: &huma.RequestBody{
			Required: true,
			Content:  map[string]*huma.MediaType{wire.TypeJSON: {Schema: api.Schema(wire.TokenRequest{})}},
		},
		Responses: api.Responses(http.StatusCreated, wire.TypeJSON, api.Schema(wire.NewToken{}),
			400, 403, 413, 415, 422, 429),
	}, t.create)
	responses := api.Responses(http.StatusNoContent, wire.TypeJSON, nil, 403, 404)
	responses["204"].Content = nil
	api.Handle(huma.Operation{
		OperationID: "revoke-token", Method: http.MethodDelete, Path: pathOne, Summary: "Revoke a token",
		Description: "It is refused from now on, and what is being answered to it ends: streams, followed logs, reads that block.",
		Parameters: []*huma.Param{{
			Name: "id", In: "path", Required: true, Description: "its ID", Schema: &huma.Schema{Type: huma.TypeString},
		}},
		Responses: responses,
	}, t.revoke)
}

func (t *Tokens) list(w http.ResponseWriter, _ *http.Request, _ func(string) string) error {
	store, err := t.stored()
	if err != nil {
		return err
	}
	out := wire.List[wire.Token]{Items: []wire.Token{}}
	for _, token := range store.List() {
		out.Items = append(out.Items, form(token))
	}
	return answer(w, http.StatusOK, out)
}

func (t *Tokens) create(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	store, err := t.stored()
	if err != nil {
		return err
	}
	var in wire.TokenRequest
	if err = rest.ReadObject(w, r, t.cfg.Bodies, &in); err != nil {
		return err
	}
	expires, err := lifetime(in.For)
	if err != nil {
		return err
	}
	text, made, err := store.Create(access.Token{
		Name: in.Name, User: in.User, Role: access.Role(in.Role), Expires: expires,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", pathAll+"/"+made.ID) // by which the record names it
	return answer(w, http.StatusCreated, wire.NewToken{Text: text, Token: form(made)})
}

func (t *Tokens) revoke(w http.ResponseWriter, _ *http.Request, param func(string) string) error {
	store, err := t.stored()
	if err != nil {
		return err
	}
	if err = store.Revoke(param("id")); err != nil {
		return fmt.Errorf("token %.80q: %w (`cloudshare token list` shows the IDs)", param("id"), err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
