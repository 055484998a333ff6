package devfed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node/access"
)

// writeToken has the site's data hold an operator's token, as its broker would at its first start, and writes it where
// users of dev look for it. One that its owner has moved away stays where it is.
func (s *devSite) writeToken() error {
	data := s.file("data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("make data folder of %s: %w", s.Name, err)
	}
	if _, err := access.OpenIn(data); err != nil {
		return err
	}
	text, err := access.ReadText(filepath.Join(data, access.OperatorFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return access.WriteText(s.file(access.OperatorFile), text)
}

// client returns one that asks the site as its operator.
func (s *devSite) client() (*client.Client, error) {
	text, err := access.ReadText(s.file(access.OperatorFile))
	if err != nil {
		return nil, err
	}
	c, err := client.New(s.HTTP)
	if err != nil {
		return nil, err
	}
	return c.WithToken(text), nil
}

// tokenFiles are those of the sites, by address.
func tokenFiles(sites []*devSite) map[string]string {
	files := map[string]string{}
	for _, s := range sites {
		files[s.HTTP] = s.file(access.OperatorFile)
	}
	return files
}

// tellTokens lets the user's other commands find the sites' tokens.
func (d *dev) tellTokens(sites []*devSite) {
	if err := d.Contexts().Add(tokenFiles(sites)); err != nil {
		d.Note("%s; give the other commands --token-file SITE/token", err)
	}
}

// forgetTokens takes that back.
func (d *dev) forgetTokens(sites []*devSite) {
	if err := d.Contexts().Remove(tokenFiles(sites)); err != nil {
		d.Note("%s", err)
	}
}
