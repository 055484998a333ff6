package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Motion is what electors decide on.
type Motion struct {
	Number  uint64
	What    string
	Site    string
	State   string
	Missing []string
}

// Member is a site that was admitted.
type Member struct {
	Site    string
	Key     string
	Elector bool
	Banned  bool
}

// Members returns who was admitted.
func (s *Site) Members(ctx context.Context) ([]Member, error) {
	l, err := get[list[Member]](ctx, s, "/v1/members")
	return l.Items, err
}

// Motions returns the motions in a state.
func (s *Site) Motions(ctx context.Context, state string) ([]Motion, error) {
	l, err := get[list[Motion]](ctx, s, "/v1/motions?state="+state)
	return l.Items, err
}

// Invite has a site invite another, and the other electors agree where it takes them. It returns the invitation.
func (s *Site) Invite(ctx context.Context, name string, electors ...*Site) (token string, err error) {
	return s.InviteWith(ctx, name, nil, electors...)
}

// InviteWith is Invite, with more fields of the request.
func (s *Site) InviteWith(
	ctx context.Context,
	name string,
	more map[string]any,
	electors ...*Site,
) (token string, err error) {
	var invited struct{ Token string }
	request := map[string]any{"site": name}
	maps.Copy(request, more)
	if err = s.post(ctx, http.MethodPost, "/v1/invitations", request, &invited); err != nil {
		return "", fmt.Errorf("invite %s: %w", name, err)
	}
	return invited.Token, s.agree(ctx, "admit", name, electors)
}

// InviteFile is Invite, with the invitation in a file: it returns the arguments by which a broker joins.
func (s *Site) InviteFile(ctx context.Context, dir, name string, electors ...*Site) (args []string, err error) {
	token, err := s.Invite(ctx, name, electors...)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "invitation-"+name)
	return []string{"--join", "@" + file}, os.WriteFile(file, []byte(token+"\n"), 0o600)
}

// Propose makes a motion about a site, and has the other electors agree where it takes them.
func (s *Site) Propose(ctx context.Context, what, name string, electors ...*Site) error {
	if err := s.post(ctx, http.MethodPost, "/v1/motions", map[string]any{"what": what, "site": name}, nil); err != nil {
		return fmt.Errorf("propose %s of %s: %w", what, name, err)
	}
	return s.agree(ctx, what, name, electors)
}

// agree has electors vote for what is open about a site, until it is decided.
func (s *Site) agree(ctx context.Context, what, name string, electors []*Site) error {
	for _, e := range electors {
		open, err := s.Motions(ctx, "open")
		if err != nil {
			return err
		}
		at := slices.IndexFunc(open, func(m Motion) bool { return m.What == what && m.Site == name })
		if at < 0 {
			return nil
		}
		if !slices.Contains(open[at].Missing, e.Name) {
			continue
		}
		path := fmt.Sprintf("/v1/motions/%d/vote", open[at].Number)
		err = e.post(ctx, http.MethodPut, path, map[string]any{"yes": true}, nil)
		if isDecided(err) { // this site has not heard of it yet
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s votes on %s of %s: %w", e.Name, what, name, err)
		}
	}
	return nil
}

// isDecided reports whether a vote came when enough others had voted.
func isDecided(err error) bool {
	var he *HTTPError
	return errors.As(err, &he) && strings.HasSuffix(he.Problem.Type, ":motion-closed")
}

// post sends a JSON document, and reads the answer into out unless that is nil.
func (s *Site) post(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	answer, _, err := s.Do(ctx, method, path, http.Header{"Content-Type": {"application/json"}}, body)
	if err == nil && out != nil {
		err = json.Unmarshal(answer, out)
	}
	return err
}
