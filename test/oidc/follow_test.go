package oidc

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// short is the life of tokens that end while something is followed: the broker takes each for 60 s more.
const short = -45 * time.Second

// talk is a task that says one to n, a second each.
func talk(n int) []string {
	return []string{"--", "sh", "-c", fmt.Sprintf("for i in $(seq %d); do echo line $i; sleep 1; done", n)}
}

// said are the lines that talk prints, whatever stands before and between them.
func said(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "line "); ok {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, " ")
}

// What follows is told all, and each thing once, although the tokens end meanwhile: the login goes on.
func TestFollowersOutliveTheirToken(t *testing.T) {
	p := startProvider(t)
	p.set(short, "physics")
	b := startBroker(t, p)
	if _, err := b.logIn(p, "--addr", b.url); err != nil {
		t.Fatal(err)
	}
	const seconds = 35 // two tokens end within that
	id := strings.TrimSpace(b.run(append([]string{"submit", "--addr", b.url}, talk(seconds)...)...))
	events, stop := b.follow("events", "--addr", b.url, "--job", id, "--from", "0", "-o", "json")
	defer stop()
	outs := map[string]chan string{}
	for name, args := range map[string][]string{
		"logs":        {"logs", id, "--follow", "--addr", b.url},
		"logs of all": {"logs", id, "--all", "--follow", "--addr", b.url},
		"wait":        {"wait", id, "--addr", b.url},
		"job --watch": {"job", id, "--watch", "--addr", b.url},
		"run":         append([]string{"run", "--addr", b.url}, talk(seconds)...),
	} {
		outs[name] = make(chan string, 1)
		go func() {
			out, err := b.command(args...).Output()
			if err != nil {
				t.Errorf("%s: %v: %s", name, err, stderrOf(err))
			}
			outs[name] <- string(out)
		}()
	}
	var want []string
	for i := range seconds {
		want = append(want, fmt.Sprint(i+1))
	}
	for name, out := range outs {
		text := <-out
		if lines := name == "run" || strings.HasPrefix(name, "logs"); lines && said(text) != strings.Join(want, " ") {
			t.Errorf("%s: %s", name, said(text))
		}
	}
	b.await("the end is told", func() error {
		if text := events.String(); !strings.Contains(text, "job.ended") {
			return fmt.Errorf("events: %s", text)
		}
		return nil
	})
	for _, kind := range []string{"job.submitted", "task.started", "task.ended", "job.ended"} {
		if n := strings.Count(events.String(), `"`+kind+`"`); n > 1 {
			t.Errorf("%s was told %d times: %s", kind, n, events)
		}
	}
}

func stderrOf(err error) string {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // of Output alone
		return string(exit.Stderr)
	}
	return ""
}

// follow types a command line that goes on until it is stopped.
func (b *broker) follow(args ...string) (out *buffer, stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	cmd := b.command(args...)
	out = new(buffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	return out, func() { cancel(); _ = cmd.Wait() }
}

// Whoever logs out ends what follows with the token that is held last, and the provider gives no more.
func TestLogoutRevokes(t *testing.T) {
	p := startProvider(t)
	b := startBroker(t, p)
	if _, err := b.logIn(p, "--addr", b.url); err != nil {
		t.Fatal(err)
	}
	refresh := b.keptLogin().Refresh
	if _, err := p.TokenRequestByRefreshToken(t.Context(), refresh); err != nil {
		t.Fatal(err)
	}
	out := b.run("logout", "--addr", b.url)
	t.Log(out)
	if !strings.Contains(out, "has ended the login") || !strings.Contains(out, "holds at the broker until") {
		t.Error(out)
	}
	if _, err := p.TokenRequestByRefreshToken(t.Context(), refresh); err == nil {
		t.Error("the provider still renews the login")
	}
}

// A provider that is away keeps nobody logged in here.
func TestLogoutWithoutTheProvider(t *testing.T) {
	p := startProvider(t)
	b := startBroker(t, p)
	if _, err := b.logIn(p, "--addr", b.url); err != nil {
		t.Fatal(err)
	}
	p.away.Store(true)
	out := b.run("logout", "--addr", b.url)
	t.Log(out)
	for _, words := range []string{"logged out", "has not ended the login", "end it there", "holds at the broker until"} {
		if !strings.Contains(out, words) {
			t.Errorf("no %q in %s", words, out)
		}
	}
	if kept := b.keptLogin(); kept.Refresh != "" {
		t.Error("the login is kept")
	}
}
