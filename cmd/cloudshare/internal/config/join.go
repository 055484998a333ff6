package config

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/invitation"
)

// maxInvitation bounds what is read of a file or of stdin, in bytes.
const maxInvitation = 64 << 10

// checkJoin refuses what was the way to join once: an address.
func (c Config) checkJoin() error {
	if strings.HasPrefix(c.Join, "@") {
		return nil
	}
	for _, text := range strings.Split(c.Join, ",") {
		if _, err := parseAddress(text); err == nil {
			return cli.Usage("join %.100s: a broker joins by an invitation, not through an address: have a member run "+
				"`cloudshare invite %s`, then give what it prints: --join TOKEN, --join @FILE or --join -", c.Join, c.Site)
		}
	}
	return nil
}

// checkDeny refuses names that no site has, and this site's own.
func (c Config) checkDeny() error {
	for _, site := range c.Deny {
		switch {
		case !command.ValidSite(site):
			return cli.Usage("deny %.80q: that is no site's name: lower-case letters, digits and '-'", site)
		case site == c.Site:
			return cli.Usage("deny %s: that is this site itself", site)
		}
	}
	return nil
}

// Invitation reads the invitation by which to join, which stdin may hold; nil if there is none. It is not read
// before it is needed: where data are there already, the file may be gone.
func (c Config) Invitation(stdin io.Reader) (*invitation.Invitation, error) {
	if c.Join == "" {
		return nil, nil
	}
	v, err := ReadInvitation(c.Join, stdin)
	if err == nil && v.Site != c.Site {
		return nil, cli.Usage("join: the invitation is for site %s, and this is site %s: start it with --site %s, or have a member "+
			"run `cloudshare invite %s`", v.Site, c.Site, v.Site, c.Site)
	}
	return v, err
}

// ReadInvitation reads an invitation: a text, @FILE or - for stdin.
func ReadInvitation(join string, stdin io.Reader) (*invitation.Invitation, error) {
	text, err := invitationText(join, stdin)
	if err != nil {
		return nil, cli.Usage("join: %w", err)
	}
	v, err := invitation.Parse(text)
	if err != nil {
		return nil, cli.Usage("join: %w", err)
	}
	return &v, nil
}

// invitationText never puts the text into an error: it is a secret.
func invitationText(join string, stdin io.Reader) (string, error) {
	switch file, isFile := strings.CutPrefix(join, "@"); {
	case join == "-":
		b, err := io.ReadAll(io.LimitReader(stdin, maxInvitation))
		return string(b), err
	case isFile && file == "":
		return "", errors.New("@ names no file: --join @FILE")
	case isFile:
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		b, err := io.ReadAll(io.LimitReader(f, maxInvitation))
		return string(b), err
	}
	return join, nil
}
