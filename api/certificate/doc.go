// Package certificate is what a broker's API shows to clients that speak TLS (step 1 of a job's way): a certificate
// from files that somebody renews, or one that the broker makes and whose key the tokens name. It imports neither the
// API nor the broker. TLS between brokers is another thing: package node/identity.
package certificate

import "crypto/tls"

// Config returns the settings of a listener for clients whose certificate get returns.
func Config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: []string{"h2", "http/1.1"}}
}
