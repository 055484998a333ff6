package peers

import (
	"net"
	"net/http"
	"time"
)

func newRoad(timeout time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, // logs are passed on as they come
	}
}

// roads are the connections to other brokers: the answer to a blocking read is waited
// for longer.
type roads struct {
	plain, patient *http.Transport
	blocks         func(*http.Request) bool
}

func newRoads(cfg *Config) *roads {
	p := &roads{newRoad(cfg.Timeout), newRoad(cfg.Timeout), cfg.Blocks}
	p.patient.ResponseHeaderTimeout += cfg.Patience
	return p
}

// RoundTrip implements http.RoundTripper.
func (p *roads) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.blocks(r) {
		return p.patient.RoundTrip(r)
	}
	return p.plain.RoundTrip(r)
}

// CloseIdleConnections ends what is kept open.
func (p *roads) CloseIdleConnections() {
	p.plain.CloseIdleConnections()
	p.patient.CloseIdleConnections()
}
