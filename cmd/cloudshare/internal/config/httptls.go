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
	if c.HTTPTLSCert != "" && c.HTTPTLSSelfMade {
		return cli.Usage("http_tls_cert and http_tls_self_made are two certificates: name the files, or have the broker make one")
	}
	return nil
}

// securedHTTP reports whether the API speaks HTTPS.
func (c Config) securedHTTP() bool { return c.HTTPTLSCert != "" || c.HTTPTLSSelfMade }

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
