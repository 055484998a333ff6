package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strconv"
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
	now func() time.Time

	mu   sync.Mutex
	open map[[sha256.Size]byte]session // by the hash of its id; guarded by mu. Invariant: at most maxSessions
}

type session struct {
	token string // ID of the one that opened it: it ends with that
	ends  time.Time
}

func newSessions() *sessions {
	return &sessions{now: time.Now, open: map[[sha256.Size]byte]session{}}
}

// begin opens a session and returns its id. If there are too many, the one that would end first ends.
func (s *sessions) begin(token string) string {
	id := rand.Text() + rand.Text()
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		s.drop()
	}
	s.open[sha256.Sum256([]byte(id))] = session{token, now.Add(sessionLife)}
	return id
}

// drop ends the session that would end first. REQUIRES: s.mu held.
func (s *sessions) drop() {
	var first [sha256.Size]byte
	var ends time.Time
	for key, one := range s.open {
		if ends.IsZero() || one.ends.Before(ends) {
			first, ends = key, one.ends
		}
	}
	delete(s.open, first)
}

// token returns the ID of the token that opened a session, "" if there is no such session.
func (s *sessions) token(id string) string {
	key := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[key]
	if !ok {
		return ""
	}
	if !s.now().Before(one.ends) {
		delete(s.open, key)
		return ""
	}
	return one.token
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(id)))
}

// cookieName tells the brokers of one machine apart: browsers send a host's cookies to all of its ports.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	n, _ := strconv.ParseUint(port, 10, 16) // none: 0
	return "cloudshare-" + strconv.FormatUint(n, 10)
}

func cookieOf(r *http.Request) string {
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
	return cookie(r, a.sessions.begin(token.ID), sessionLife), nil
}

// LogOut ends the session of a request, and returns the cookie that takes back its own.
func (a *Auth) LogOut(r *http.Request) *http.Cookie {
	a.sessions.end(cookieOf(r))
	return cookie(r, "", -time.Second)
}

// LoggedIn reports whether a request comes with a session, or needs none: its token was looked at before.
func (a *Auth) LoggedIn(r *http.Request) bool {
	if !a.On() || r.Header.Values("Authorization") != nil {
		return true
	}
	_, err := a.session(r)
	return err == nil
}

// session returns the token that opened the session of a request. Programs change things with a token alone, and a
// browser says from which page it asks.
func (a *Auth) session(r *http.Request) (access.Token, error) {
	id := cookieOf(r)
	if id == "" {
		return access.Token{}, unauthenticated("the request brings no token")
	}
	token, err := a.tokens.ByID(a.sessions.token(id))
	if err != nil {
		return access.Token{}, unauthenticated("the session has ended: log in again")
	}
	if !Reads(r) && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return access.Token{}, problem.New(http.StatusForbidden, "foreign-page", "A session changes things from the broker's own pages alone",
			"the request does not say from which page it comes; a program sends a token instead")
	}
	return token, nil
}
