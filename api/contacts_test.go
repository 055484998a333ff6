package api

import (
	"net/http"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// dialsNoted is contacts that note who has dialed.
type dialsNoted struct{ dials []string }

func (*dialsNoted) Of(string) *wire.Contact            { return nil }
func (*dialsNoted) Unreached() []wire.Unreached        { return nil }
func (*dialsNoted) Introduce(string) wire.Introduction { return wire.Introduction{} }
func (n *dialsNoted) DialedBy(site, addr string)       { n.dials = append(n.dials, site+" at "+addr) }

// TestOnlyBrokersTellWhereTheyDial: that a site reaches this broker is known by a connection that proves whose it is:
// neither a client nor a broker in another one's name can make it known.
func TestOnlyBrokersTellWhereTheyDial(t *testing.T) {
	noted := &dialsNoted{}
	s := serve(t, newFake("site-2"), Config{Contacts: noted})
	ask(s, http.MethodGet, "/v1/contact?from=site-1", "", "", wire.HeaderAt, "x:1")
	askAsPeer(s, http.MethodGet, "/v1/contact?from=site-3", wire.HeaderAt, "x:1")
	askAsPeer(s, http.MethodGet, "/v1/contact", wire.HeaderAt, "x:1")
	if len(noted.dials) != 0 {
		t.Errorf("noted %q", noted.dials)
	}
	w := askAsPeer(s, http.MethodGet, "/v1/contact?from=site-1", wire.HeaderAt, "x:1")
	if w.Code != http.StatusOK || len(noted.dials) != 1 || noted.dials[0] != "site-1 at x:1" {
		t.Errorf("%d %s, noted %q", w.Code, w.Body, noted.dials)
	}
}
