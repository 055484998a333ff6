package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node/access"
)

const (
	sessionLife = 12 * time.Hour
	maxSessions = 1000
)

// sessions are those of browsers. They end with the process: nothing of them is on a disk.
type sessions struct {
	now   func() time.Time
	ended func(key sessionKey) // called once it is not found any more

	mu   sync.Mutex
	open map[sessionKey]session // by the hash of its id; guarded by mu. Invariant: at most maxSessions
}

// sessionKey is the hash of a session's id.
type sessionKey [sha256.Size]byte

func keyOf(id string) sessionKey { return sha256.Sum256([]byte(id)) }

type session struct {
	token string // ID of the one that opened it: it ends with that
	ends  time.Time
}

func newSessions() *sessions {
	return &sessions{now: time.Now, ended: func(sessionKey) {}, open: map[sessionKey]session{}}
}

// begin opens a session and returns its id. If there are too many, the one that would end first ends.
func (s *sessions) begin(token string) string {
	id := rand.Text() + rand.Text()
	if dropped, full := s.add(keyOf(id), session{token, s.now().Add(sessionLife)}); full {
		s.ended(dropped)
	}
	return id
}

// add adds a session; if there were too many, it says which one it has ended.
func (s *sessions) add(key sessionKey, one session) (dropped sessionKey, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if full = len(s.open) >= maxSessions; full {
		dropped = s.drop()
	}
	s.open[key] = one
	return dropped, full
}

// drop ends the session that would end first, and returns its key. REQUIRES: s.mu held.
func (s *sessions) drop() (first sessionKey) {
	var ends time.Time
	for key, one := range s.open {
		if ends.IsZero() || one.ends.Before(ends) {
			first, ends = key, one.ends
		}
	}
	delete(s.open, first)
	return first
}

// token returns the ID of the token that opened a session, "" if there is no such session.
func (s *sessions) token(id string) string {
	one, _ := s.find(keyOf(id))
	return one.token
}

// find returns a session that has not ended.
func (s *sessions) find(key sessionKey) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[key]
	if ok && !s.now().Before(one.ends) {
		delete(s.open, key)
		return session{}, false
	}
	return one, ok
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	delete(s.open, keyOf(id))
	s.mu.Unlock()
	s.ended(keyOf(id))
}

// cookieName tells the brokers of one machine apart: browsers send a host's cookies to all of its ports.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	n, _ := strconv.ParseUint(port, 10, 16) // none: 0
	return "cloudshare-" + strconv.FormatUint(n, 10)
}

func cookieOf(r *http.Request) string {
	if r.Header["Cookie"] == nil {
		return "" // the name need not be made up
	}
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}

func cookie(r *http.Request, id string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: id, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

// LogIn opens a session for who has a token, and returns its cookie.
func (a *Auth) LogIn(r *http.Request, text string) (*http.Cookie, error) {
	token, err := a.find(r, text)
	if err != nil {
		return nil, err
	}
	a.sessions.end(cookieOf(r)) // the browser forgets it
	return cookie(r, a.sessions.begin(token.ID), sessionLife), nil
}

// LogOut ends the session of a request, and returns the cookie that takes back its own.
func (a *Auth) LogOut(r *http.Request) *http.Cookie {
	a.sessions.end(cookieOf(r))
	return cookie(r, "", -time.Second)
}

// session returns the token that opened the session of a request. Programs change things with a token alone, and a
// browser says from which page it asks.
func (a *Auth) session(r *http.Request) (access.Token, error) {
	id := cookieOf(r)
	if id == "" {
		return access.Token{}, unauthenticated("the request brings no token")
	}
	token, err := a.tokens.ByID(a.sessions.token(id))
	switch {
	case err != nil:
		return access.Token{}, sessionEnded()
	case strings.HasPrefix(r.URL.Path, rootOfTES):
		return access.Token{}, notFromAPage("a session is of no use to an engine of workflows: it sends a token instead")
	case Reads(r):
		return token, nil
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		return access.Token{}, notFromAPage("a session reads the API and changes nothing by it; a program sends a token instead")
	case r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "":
		return access.Token{}, notFromAPage("the request does not say from which page it comes; a program sends a token instead")
	}
	return token, nil
}

func sessionEnded() *problem.Problem {
	return refuse("A token is needed", "the session has ended: log in again", "if your token does not hold any more, "+whoMakesTokens)
}

func notFromAPage(why string) *problem.Problem {
	return problem.New(http.StatusForbidden, "foreign-page", "A session changes things from the broker's own pages alone", why)
}
