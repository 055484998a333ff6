package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUsersOfASite: two users of one site, its operator, and the operator of another one. Each sees and ends what is
// theirs, by the command line alone, and the site's record says who did what.
func TestUsersOfASite(t *testing.T) {
	t.Parallel()
	fed := start(t, 2, 2)
	here, there := fed.Sites[0], fed.Sites[1]
	operator := []string{"--addr", here.URL.String(), "--token-file", here.TokenFile()}
	elsewhere := []string{"--addr", there.URL.String(), "--token-file", there.TokenFile()}
	as := func(user string) []string {
		file := filepath.Join(t.TempDir(), user)
		wantCommand(t, 0, []string{"role user"}, append(operator, "token", "create", user, "--out", file)...)
		return []string{"--addr", here.URL.String(), "--token-file", file}
	}
	alice, bob := as("alice"), as("bob")
	code, out := command(t, append(alice, "submit", "--name", "hers", "--", "sleep", "1000")...)
	id := regexp.MustCompile(regexp.QuoteMeta(here.Name) + `\.\d+`).FindString(out)
	if code != 0 || id == "" {
		t.Fatalf("exit %d: %s", code, out)
	}
	wantCommand(t, 0, []string{id, "hers"}, append(alice, "jobs")...)
	wantCommand(t, 0, []string{"sleep", "alice"}, append(operator, "job", id, "-o", "json")...)
	for _, args := range [][]string{{"job", id}, {"tasks", id}, {"logs", id}, {"cancel", id}} {
		wantCommand(t, 5, []string{"not-owner"}, append(bob, args...)...)
	}
	for who, args := range map[string][]string{"bob": bob, "another site": elsewhere} {
		if _, out := command(t, append(args, "jobs", "-o", "json")...); strings.Contains(out, "hers") || strings.Contains(out, "alice") {
			t.Errorf("%s is told:\n%s", who, out)
		}
	}
	wantCommand(t, 0, []string{id, `"outline": true`}, append(elsewhere, "job", id, "-o", "json")...)
	wantCommand(t, 5, []string{"not-owner", here.Name}, append(elsewhere, "cancel", id)...)
	wantCommand(t, 0, nil, append(operator, "cancel", id)...)
	await(t, "that she is told who has cancelled her job", func() error {
		for _, args := range [][]string{{"job", id}, {"why", id}, {"events", "--from", "1", "--once", "--kind", "job.ended"}} {
			if code, out := command(t, append(alice, args...)...); code != 0 || !strings.Contains(out, "by the operator") &&
				!strings.Contains(strings.Join(strings.Fields(out), " "), "cancelled by the operator") {
				return fmt.Errorf("%s: exit %d: %s", args[0], code, out)
			}
		}
		return nil
	})
	if _, out := command(t, append(elsewhere, "events", "--from", "1", "--once")...); strings.Contains(out, "alice") ||
		strings.Contains(out, "the operator") {
		t.Errorf("another site is told:\n%s", out)
	}
	wantCommand(t, 5, []string{"forbidden"}, append(alice, "audit")...)
	wantCommand(t, 0, []string{"alice", "bob", "403", "POST /v1/jobs"}, append(operator, "audit", "who", id)...)
	await(t, "her row in the report", func() error {
		if code, out := command(t, append(operator, "report", "--by", "user")...); code != 0 || !strings.Contains(out, "\nalice ") {
			return fmt.Errorf("exit %d: %s", code, out)
		}
		return nil
	})
	for who, args := range map[string][]string{"bob": bob, "another site": elsewhere} {
		if code, out := command(t, append(args, "report", "--by", "user")...); code != 0 || strings.Contains(out, "alice") {
			t.Errorf("%s is told, exit %d:\n%s", who, code, out)
		}
	}
}

// TestQuotasOfUsers: what a user is refused by the operator's quota, also after the broker was killed, and what others
// may all the same.
func TestQuotasOfUsers(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 2)
	site := fed.Sites[0]
	operator := []string{"--addr", site.URL.String(), "--token-file", site.TokenFile()}
	as := func(user string) []string {
		file := filepath.Join(t.TempDir(), user)
		wantCommand(t, 0, []string{"role user"}, append(operator, "token", "create", user, "--out", file)...)
		return []string{"--addr", site.URL.String(), "--token-file", file}
	}
	alice, bob := as("alice"), as("bob")
	wantCommand(t, 0, []string{"0 of 100"}, append(operator, "quota", "set", "*", "--tasks", "100")...)
	wantCommand(t, 0, []string{"alice", "own", "0 of 2"}, append(operator, "quota", "set", "alice", "--tasks", "2")...)
	wantCommand(t, 5, []string{"forbidden"}, append(alice, "quota", "set", "alice", "--tasks", "0")...)
	submit := []string{"submit", "--count", "2", "--", "sleep", "1000"}
	wantCommand(t, 0, nil, append(alice, submit...)...)
	wantCommand(t, 5, []string{"quota-exceeded", "2 of 2 tasks"}, append(alice, "submit", "--", "true")...)
	wantCommand(t, 5, []string{"quota-exceeded", "ask the site's operator"}, append(alice, "submit", "--count", "3", "--", "true")...)
	must(t, site.Kill())
	must(t, fed.Restart(within(t), site))
	wantCommand(t, 5, []string{"quota-exceeded", "2 of 2 tasks"}, append(alice, "submit", "--", "true")...)
	wantCommand(t, 0, nil, append(bob, submit...)...)
	wantCommand(t, 0, []string{"1"}, append(operator, "quota", "set", "bob", "--jobs-per-minute", "1")...)
	wantCommand(t, 0, nil, append(bob, "submit", "--", "true")...)
	wantCommand(t, 5, []string{"quota-exceeded", "try again in"}, append(bob, "submit", "--", "true")...)
	wantCommand(t, 0, []string{"alice", "2 of 2"}, append(alice, "quota", "users")...)
	wantCommand(t, 0, []string{"bob", " of 100", "alice"}, append(operator, "quota", "users")...)
}

// TestFloodOfAUser: one user's thousand tasks, as an array and as jobs, keep another's job waiting for what runs alone,
// also after the broker was killed. What is held says so.
func TestFloodOfAUser(t *testing.T) {
	t.Parallel()
	fed := start(t, 1, 2)
	site := fed.Sites[0]
	operator := []string{"--addr", site.URL.String(), "--token-file", site.TokenFile()}
	as := func(user string) []string {
		file := filepath.Join(t.TempDir(), user)
		wantCommand(t, 0, []string{"role user"}, append(operator, "token", "create", user, "--out", file)...)
		return []string{"--addr", site.URL.String(), "--token-file", file}
	}
	alice, bob := as("alice"), as("bob")
	wantCommand(t, 0, nil, append(alice, "submit", "--name", "flood", "--count", "1000", "--", "sleep", "1")...)
	var last string
	for range 20 {
		code, out := command(t, append(alice, "submit", "--name", "more", "--", "sleep", "1")...)
		if last = regexp.MustCompile(regexp.QuoteMeta(site.Name) + `\.\d+`).FindString(out); code != 0 || last == "" {
			t.Fatalf("exit %d: %s", code, out)
		}
	}
	goesFirst := func() {
		t.Helper()
		wantCommand(t, 0, nil, append(bob, "submit", "--wait", "--name", "short", "--", "true")...)
		wantCommand(t, 0, []string{"flood", " queued"}, append(alice, "jobs", "--name", "flood")...)
		wantCommand(t, 0, []string{"turn of user alice", "cloudshare quota users"}, append(alice, "why", last)...)
	}
	goesFirst()
	must(t, site.Kill())
	must(t, fed.Restart(within(t), site))
	goesFirst()
	wantCommand(t, 0, []string{"alice", "own", "3"}, append(operator, "quota", "set", "alice", "--shares", "3")...)
	wantCommand(t, 0, []string{"jobs of alice were cancelled"}, append(operator, "cancel", "--user", "alice")...)
	wantCommand(t, 0, []string{"cancelled"}, append(alice, "job", last)...)
}
