package cli

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/node/access"
)

// PlainVariable is as the flag --plain, if it is true.
const PlainVariable = "CLOUDSHARE_PLAIN"

// broker is one to ask: trust, token and login are all looked up by the same address.
type broker struct {
	at   string // with its scheme, in small letters
	here bool   // it is the one at --addr, which flags and environment are about
}

func (b broker) scheme() string {
	scheme, _, _ := strings.Cut(b.at, "://")
	return scheme
}

// Resolve returns an address with its scheme. One without has that of its context; else it is https if authorities or a
// pinned token are named for it, http on loopback, and https beyond.
func (a *App) Resolve(addr string) (string, error) {
	b, err := a.brokerAt(addr)
	return b.at, err
}

func (a *App) brokerAt(addr string) (broker, error) {
	b := broker{at: addr, here: addr == a.Addr}
	if scheme, rest, given := strings.Cut(addr, "://"); given {
		b.at = strings.ToLower(scheme) + "://" + rest
		return b, nil
	}
	if b.here {
		token, err := a.namedToken()
		if err != nil {
			return b, err
		}
		if _, pin, _ := access.Split(token); pin != nil || a.caFile() != "" {
			b.at = "https://" + addr
			return b, nil
		}
	}
	_, at, err := a.Contexts().of(addr)
	b.at = schemes(addr)[0] + addr
	if scheme, _, known := strings.Cut(at, "://"); known {
		b.at = scheme + "://" + addr
	}
	return b, err
}

// checkPlain refuses to send a token where others can read it.
func (a *App) checkPlain(b broker) error {
	allowed, _ := strconv.ParseBool(a.getenv(PlainVariable))
	if b.scheme() != "http" || OnLoopback(b.at) || b.here && (a.Plain || allowed) {
		return nil
	}
	return Usage("a token is not sent to %s: it is plain HTTP, which anybody between can read: use https:// in its address, or --plain inside a private network or a tunnel", b.at)
}

// OnLoopback reports whether an address is of this machine alone.
func OnLoopback(addr string) bool {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

// schemes are those that an address without one may mean, the likelier first.
func schemes(addr string) []string {
	if OnLoopback(addr) {
		return []string{"http://", "https://"}
	}
	return []string{"https://", "http://"}
}

// at returns how the file names an address, "" for what is none. One without a scheme has that of its context.
func (f *contextsFile) at(addr string) string {
	if strings.Contains(addr, "://") {
		return place(addr)
	}
	for _, scheme := range schemes(addr) {
		if _, ok := f.Contexts[place(scheme+addr)]; ok {
			return place(scheme + addr)
		}
	}
	return place(addr)
}
