package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/peers"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Contacts is what a broker knows of whether sites reach each other's APIs.
type Contacts interface {
	// Of returns nil for what is not known.
	Of(site string) *wire.Contact
	// Unreached lists the sites that say that they do not reach this one.
	Unreached() []wire.Unreached
	// DialedBy is told by which other site's broker this one was dialed, and at which address as that says.
	DialedBy(site, addr string)
	// Introduce answers a site that checks this one's address.
	Introduce(from string) wire.Introduction
}

// registerContact adds the question by which brokers check each other's addresses.
func (f *federation) registerContact() {
	f.api.Handle(huma.Operation{
		OperationID: "contact", Method: http.MethodGet, Path: "/v1/contact", Summary: "Who answers here, and whether it reaches the site that asks",
		Description: "For brokers, which check so whether a site is where it says.",
		Parameters:  []*huma.Param{rest.QueryParam("from", huma.TypeString, "the site that asks")},
		Responses:   f.api.Responses(http.StatusOK, wire.TypeJSON, f.api.Schema(wire.Introduction{}), 400),
	}, func(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
		from := r.URL.Query().Get("from")
		if from != "" && !command.ValidSite(from) {
			return problem.BadQuery("from", from, "is not a site's name")
		}
		if f.contacts == nil {
			return rest.WriteJSON(w, http.StatusOK, wire.Introduction{Site: f.broker.Site(), Federation: f.id})
		}
		if from != "" && from == peers.FromSite(r.Context()) {
			f.contacts.DialedBy(from, r.Header.Get(wire.HeaderAt))
		}
		return rest.WriteJSON(w, http.StatusOK, f.contacts.Introduce(from))
	})
}

// withContacts adds what this broker knows of whether it reaches them.
func (f *federation) withContacts(sites []wire.Site) {
	if f.contacts == nil {
		return
	}
	for i := range sites {
		sites[i].Contact = f.contacts.Of(sites[i].ID)
	}
}

// unreached returns those that do not reach this broker.
func (f *federation) unreached() []wire.Unreached {
	if f.contacts == nil {
		return nil
	}
	return f.contacts.Unreached()
}
