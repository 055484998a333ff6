package config

import (
	"net"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// checkHTTPTLS checks what clients are shown.
func (c Config) checkHTTPTLS() error {
	if (c.HTTPTLSCert == "") != (c.HTTPTLSKey == "") {
		return cli.Usage("http_tls_cert and http_tls_key belong together: name both files, or neither")
	}
	return nil
}

// SelfMadeTLS reports whether the broker makes a certificate for clients by itself: there are no files, and the API is
// not on loopback, nor to be plain HTTP there.
func (c Config) SelfMadeTLS() bool {
	a, err := parseAddress(c.HTTP)
	return c.HTTPTLSCert == "" && !c.Insecure && err == nil && !a.loopback()
}

// HTTPHosts are the hosts that clients may ask the API by, as far as they are configured.
func (c Config) HTTPHosts() (hosts []string) {
	for _, text := range append([]string{c.HTTP, c.Peer, c.Advertise}, c.HTTPNames...) {
		if host, _, err := net.SplitHostPort(text); err == nil {
			text = host
		}
		if text != "" {
			hosts = append(hosts, text)
		}
	}
	return hosts
}
