// Package outward asks hosts outside the federation by https: those only that the site's configuration names, and by no
// address that only this machine or its network reaches. The broker fetches files by it (node/files/imports) and sends
// notices (node/notices). It knows neither files nor jobs.
//
//	r := outward.Rules{Hosts: []string{"data.example.org"}, Refused: ErrRefused, ...}
//	err := r.CheckHost(u)                       // whether a URL's host may be asked
//	client := &http.Client{Transport: r.Transport()} // checks each address where it connects
package outward

import "crypto/x509"

// Rules say which hosts may be asked.
type Rules struct {
	// Hosts may be asked: HOST, HOST:PORT, or *.DOMAIN for the names below one. None: nobody is asked.
	Hosts []string
	// Private lets hosts have addresses that only this machine or its network reaches.
	Private bool
	// Proxy has requests go by the proxy that the environment names; its addresses are not checked then.
	Proxy bool
	// Roots vouch for hosts; nil: the system's authorities.
	Roots *x509.CertPool
	// Refused is what every refusal wraps.
	Refused error
	// HostsKey and PrivateKey are where the configuration has Hosts and Private: refusals name them.
	HostsKey, PrivateKey string
}
