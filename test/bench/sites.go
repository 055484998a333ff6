package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// siteCount of every figure.
const siteCount = 3

// startSites starts a fresh federation for one section.
func startSites(ctx context.Context, env environment, name string, cores int) (*testbed.Federation, error) {
	dir := filepath.Join(env.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of %s: %w", name, err)
	}
	fed, err := testbed.Start(ctx, testbed.Options{Binary: env.binary, Dir: dir, Sites: siteCount, Cores: cores})
	if err != nil {
		return nil, fmt.Errorf("start federation: %w", err)
	}
	return fed, nil
}

// mustJSON encodes a value of our own types, which cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
