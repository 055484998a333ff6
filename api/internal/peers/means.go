package peers

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/contact"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// An address that a site registered may be another broker's, by a typo or because it
// moved. So a request that is passed on names the site that it means, and the answer
// names the one that gives it: nothing is cancelled or told by a broker that was not
// asked.

// means returns HeaderMeans of a request to a site.
func (c *Client) means(site string) string { return site + "/" + c.cfg.Federation }

// checkMeant refuses what another broker meant for somebody else.
func (c *Client) checkMeant(r *http.Request) error {
	means := r.Header.Get(wire.HeaderMeans)
	if means == "" {
		return nil
	}
	site, federation, _ := strings.Cut(means, "/")
	if site == c.cfg.Site() && (federation == c.cfg.Federation || federation == "" || c.cfg.Federation == "") {
		return nil
	}
	return problem.New(http.StatusMisdirectedRequest, "other-site", "Another broker was meant",
		"this is site "+c.cfg.Site()+" of federation "+c.cfg.Federation+", meant was "+problem.OneLine(means)+": correct `advertise` or `peer` of the latter")
}

// errOtherBroker reports that an address is not that of the site that registered it.
var errOtherBroker = errors.New("another one answers there")

// answersAs checks who gave an answer, and takes that word out of it.
func answersAs(res *http.Response, site string) error {
	got := res.Header.Get(wire.HeaderSite)
	res.Header.Del(wire.HeaderSite)
	switch {
	case got == "":
		return fmt.Errorf("%w: no broker", errOtherBroker)
	case got != site:
		return fmt.Errorf("%w: the broker of site %.63q", errOtherBroker, got)
	case res.StatusCode == http.StatusMisdirectedRequest:
		return fmt.Errorf("%w: a broker of another federation, or one that does not go by that name", errOtherBroker)
	}
	return nil
}

// notReached says which address was tried, and which keys it is from.
func notReached(e *node.ElsewhereError, err error) string {
	why := "does not answer (" + err.Error() + ")"
	if errors.Is(err, errOtherBroker) {
		why = "is not it (" + err.Error() + ")"
	}
	return "its broker at " + e.Peer + " " + why + contact.Remedy(e.Site)
}
