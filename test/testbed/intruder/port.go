package intruder

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// Port is a peer port that the intruder answers at, by its key.
type Port struct {
	Addr string
	mux  *relay.Mux
	http *http.Server
}

// Listen opens one at a loopback port. answer is asked for what a question of kind join is answered, web serves what
// brokers ask over HTTP, and files the connections on which they ask for files, nil: none; all may be called from any
// goroutine.
func (i *Intruder) Listen(
	answer func(question map[string]any) any, web http.Handler, files func(net.Conn, relay.Preamble),
) (*Port, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Port{Addr: ln.Addr().String(), mux: relay.NewMux(ln, i.Site, 2*time.Second, zerolog.Nop(), i.network())}
	p.mux.Handle(relay.KindJoin, func(conn net.Conn, _ relay.Preamble) {
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		b, err := Conn{Conn: conn}.Receive()
		var q map[string]any
		if err == nil {
			err = json.Unmarshal(b, &q)
		}
		if err == nil {
			b, err = json.Marshal(answer(q))
		}
		if err == nil {
			_ = Conn{Conn: conn}.Send(b) // who asks may have gone
		}
	})
	if files != nil {
		p.mux.Handle(relay.KindFiles, files)
	}
	asked := relay.NewHTTPListener(p.mux)
	p.http = &http.Server{Handler: web, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.http.Serve(asked) }() // until Close
	p.mux.SetGroup(i.Group)
	p.mux.Serve()
	return p, nil
}

// Close ends it.
func (p *Port) Close() {
	_ = p.http.Close()
	p.mux.Close()
}
