package imports

import (
	"fmt"
	"net/url"

	"github.com/cloudshare/cloudshare/node/outward"
)

// rules are those by which hosts are asked.
func (m *Imports) rules() outward.Rules {
	return outward.Rules{
		Hosts: m.cfg.Hosts, Private: m.cfg.Private, Proxy: m.cfg.Proxy, Roots: m.cfg.Roots, Refused: ErrRefused,
		HostsKey: "data.fetch_from", PrivateKey: "data.fetch_private",
	}
}

// permit refuses what may not be asked for, with the reason.
func (m *Imports) permit(text string) error {
	if isObject(text) {
		_, err := m.checkObject(text)
		return err
	}
	_, err := m.check(text)
	return err
}

// check returns the URL of a text if it may be asked, else ErrRefused with the reason.
func (m *Imports) check(text string) (*url.URL, error) {
	if len(text) > MaxURL {
		return nil, refuse("it has more than %d bytes", MaxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse("it is no URL")
	}
	return u, m.checkURL(u)
}

func (m *Imports) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "https":
		return refuse("its scheme is %.20q: only https and s3 are fetched", u.Scheme)
	case u.User != nil:
		return refuse("it names a user: credentials stay out of URLs, fetch it yourself and upload it")
	}
	r := m.rules()
	return r.CheckHost(u)
}

// plain returns an error of net/http without what its reader knows; see outward.Rules.
func plain(err error) error { return (&outward.Rules{Refused: ErrRefused}).Plain(err) }

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}
