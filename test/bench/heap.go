package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// heapMiB returns what a broker's heap holds once its garbage is collected, by the socket in its data folder.
func heapMiB(ctx context.Context, s *testbed.Site) (float64, error) {
	socket := filepath.Join(s.Dir, "data", "debug.sock")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/debug/pprof/heap?debug=1&gc=1", nil)
	if err != nil {
		return 0, err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask %s for its heap: %w", s.Name, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, fmt.Errorf("read the heap of %s: %w", s.Name, err)
	}
	return parseHeap(string(text))
}

// parseHeap finds "# HeapAlloc = 1234" behind a profile, in MiB.
func parseHeap(profile string) (float64, error) {
	for line := range strings.Lines(profile) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "# HeapAlloc = ")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse heap %q: %w", v, err)
		}
		return float64(n) / (1 << 20), nil
	}
	return 0, fmt.Errorf("the profile of %d bytes says nothing of the heap", len(profile))
}
