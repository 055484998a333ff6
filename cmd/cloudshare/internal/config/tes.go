package config

import (
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/exports"
)

// TESConfig says what the tasks of workflow engines may name (GA4GH TES, at /ga4gh/tes/v1).
type TESConfig struct {
	Roots []string `koanf:"roots" doc:"USER=/FOLDER of this machine that file:// URLs of a user's tasks may be read from and written to, by the broker and with its rights; USER=/FOLDER:ro is read only; USER * is everybody, for reading only, @site tokens that name no user; none = such URLs are refused"`
}

func defaultTES() TESConfig { return TESConfig{Roots: []string{}} }

// TESRoots returns the folders that tasks may name.
func (c Config) TESRoots() (exports.Roots, error) {
	roots, err := exports.ParseRoots(c.TES.Roots)
	if err != nil {
		return nil, cli.Usage("tes.roots: %w", err)
	}
	if err := roots.Apart(c.secrets()); err != nil {
		return nil, cli.Usage("tes.roots: %w", err)
	}
	return roots, nil
}
