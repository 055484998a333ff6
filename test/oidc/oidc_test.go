package oidc

import (
	"bufio"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// logIn types cloudshare login, and confirms the code as alice. It returns all that the command says.
func (b *broker) logIn(p *provider, args ...string) (said string, err error) {
	b.Helper()
	cmd := b.command(append([]string{"login"}, args...)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		b.Fatal(err)
	}
	code := regexp.MustCompile(`confirm the code ([A-Z]{4}-[A-Z]{4}),`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if m := code.FindStringSubmatch(lines.Text()); m != nil {
			if err = p.CompleteDeviceAuthorization(b.Context(), m[1], "1"); err != nil {
				b.Error(err)
			}
		}
	}
	return said, cmd.Wait()
}

// A user logs in by the device grant, submits a job, and it is his.
func TestLogin(t *testing.T) {
	p := startProvider(t)
	b := startBroker(t, p)
	b.run("context", "add", "lab", "--addr", b.url)
	if code, said := b.fails("jobs"); code != 5 || !strings.Contains(said, "unauthenticated") {
		t.Errorf("before: exit %d, %s", code, said)
	}
	said, err := b.logIn(p)
	t.Log(said)
	if err != nil || !strings.Contains(said, "logged in at site lab as alice, role user") {
		t.Fatal(err)
	}
	file := filepath.Join(b.home, ".config", "cloudshare", "contexts.json")
	if st, cause := os.Stat(file); cause != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, cause)
	}
	t.Log(b.run("whoami"))
	t.Log(b.run("context", "list"))
	if out := b.run("submit", "--wait", "--", "true"); !strings.Contains(out, "succeeded") {
		t.Error(out)
	}
	var jobs struct{ Items []struct{ User string } }
	if err = json.Unmarshal([]byte(b.run("jobs", "-o", "json")), &jobs); err != nil || len(jobs.Items) != 1 || jobs.Items[0].User != "alice" {
		t.Errorf("%+v, %v", jobs, err)
	}
	if code, said := b.fails("token", "list"); code != 5 || !strings.Contains(said, "forbidden") {
		t.Errorf("the operator's: exit %d, %s", code, said)
	}
	record := b.run("audit", "who", "alice", "--addr", "unix://"+filepath.Join(b.dir, "data", "api.sock"))
	t.Log(record)
	if !strings.Contains(record, "oidc:") {
		t.Error("the record does not name the token")
	}
	b.run("logout")
	if code, said := b.fails("whoami"); code != 5 || !strings.Contains(said, "unauthenticated") {
		t.Errorf("logged out: exit %d, %s", code, said)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "eyJ") {
		t.Error("tokens are kept")
	}
}

// Tokens that are about to end are renewed, by one of many commands at a time: the provider takes a refresh token once.
func TestRenewal(t *testing.T) {
	p := startProvider(t)
	p.set(30*time.Second, "physics") // less than what a command wants
	b := startBroker(t, p)
	if _, err := b.logIn(p, "--addr", b.url); err != nil {
		t.Fatal(err)
	}
	p.set(time.Hour, "physics")
	errs := make(chan error)
	for range 8 {
		go func() { errs <- b.command("whoami", "--addr", b.url).Run() }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if kept := b.keptLogin(); time.Until(kept.Expires) < 30*time.Minute {
		t.Errorf("not renewed: it ends at %v", kept.Expires)
	}
}

// login is what the user's home has of one.
type login struct {
	Expires time.Time
	Refresh string `json:"refresh_token"`
}

// keptLogin returns the login at the broker, empty if there is none.
func (b *broker) keptLogin() login {
	b.Helper()
	var kept struct {
		Contexts map[string]struct{ Login login }
	}
	text, err := os.ReadFile(filepath.Join(b.home, ".config", "cloudshare", "contexts.json"))
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		b.Fatal(err)
	}
	return kept.Contexts[b.url].Login
}

// Who has no role is told so at the login, which is not kept.
func TestUnknownGroup(t *testing.T) {
	p := startProvider(t)
	p.set(time.Hour, "chess")
	b := startBroker(t, p)
	said, err := b.logIn(p, "--addr", b.url)
	t.Log(said)
	if err == nil || !strings.Contains(said, "no value of claim groups gives alice a role") {
		t.Errorf("%v: %s", err, said)
	}
	if code, out := b.fails("whoami", "--addr", b.url); code != 5 || !strings.Contains(out, "unauthenticated") {
		t.Errorf("exit %d, %s", code, out)
	}
	p.set(time.Hour, "admins")
	if said, err = b.logIn(p, "--addr", b.url); err != nil || !strings.Contains(said, "role operator") {
		t.Errorf("%v: %s", err, said)
	}
}

func TestWrongTokens(t *testing.T) {
	p := startProvider(t)
	b := startBroker(t, p)
	none := b.ask("")
	if got := none.header.Get("WWW-Authenticate"); none.Status != 401 || !strings.Contains(got, `issuer="`+p.issuer()+`", client_id="cloudshare"`) {
		t.Errorf("without a token: %d, %s", none.Status, got)
	}
	good := p.sign(t, nil)
	if got := b.ask(good); got.Status != 200 || !strings.Contains(got.Detail, `"alice"`) {
		t.Fatalf("%d %s", got.Status, got.Detail)
	}
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for what, changed := range map[string]map[string]any{
		"expired 30 s ago": {"exp": at(-30 * time.Second)},
		"issued in 30 s":   {"iat": at(30 * time.Second), "nbf": at(30 * time.Second)},
	} {
		if got := b.ask(p.sign(t, changed)); got.Status != 200 {
			t.Errorf("%s: %d %s", what, got.Status, got.Detail)
		}
	}
	public, err := x509.MarshalPKIXPublicKey(p.key.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	public = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	parts := strings.Split(good, ".")
	raw := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for what, c := range map[string]struct {
		token  string
		status int
		words  string
	}{
		"expired 120 s ago":       {p.sign(t, map[string]any{"exp": at(-2 * time.Minute)}), 401, "expired"},
		"issued in 120 s":         {p.sign(t, map[string]any{"iat": at(2 * time.Minute)}), 401, "clocks"},
		"holds in 120 s":          {p.sign(t, map[string]any{"nbf": at(2 * time.Minute)}), 401, "clocks"},
		"without an end":          {p.sign(t, map[string]any{"exp": nil}), 401, "when it ends"},
		"wrong issuer":            {p.sign(t, map[string]any{"iss": "https://evil.example"}), 401, "another issuer"},
		"wrong audience":          {p.sign(t, map[string]any{"aud": "wiki"}), 401, "another audience"},
		"unknown group":           {p.sign(t, map[string]any{"groups": []string{"chess"}}), 403, "gives alice a role"},
		"no user's name":          {p.sign(t, map[string]any{"preferred_username": "Al/ice"}), 403, "cannot be a user's name"},
		"alg none":                {raw(`{"alg":"none"}`) + "." + parts[1] + ".", 401, "no JWT that is signed by ES256"},
		"HMAC by the public key":  {sign(t, jose.HS256, public, "first", p.claims(nil)), 401, "no JWT that is signed by ES256"},
		"signed by another key":   {sign(t, jose.ES256, newKey(t, "").key, "first", p.claims(nil)), 401, "changed or forged"},
		"signed by an unheard-of": {sign(t, jose.ES256, newKey(t, "").key, "mine", p.claims(nil)), 401, "does not have"},
		"changed":                 {parts[0] + "." + raw(`{"sub":"2"}`) + "." + parts[2], 401, "changed or forged"},
	} {
		b.refuses(what, c.token, c.status, c.words)
	}
}
