package outward

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// UserAgent is what hosts are told of who asks.
const UserAgent = "cloudshare"

// Transport returns what connects to hosts: each address is checked, nothing is unpacked, and headers are bounded. Who
// uses it calls CheckHost of each URL before, also of those that a redirection names.
func (r Rules) Transport() *http.Transport {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, Control: r.Control}).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.Roots},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, ForceAttemptHTTP2: true, IdleConnTimeout: 10 * time.Second,
	}
	if r.Proxy {
		t.Proxy = http.ProxyFromEnvironment
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	return t
}
