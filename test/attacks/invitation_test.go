//go:build attacks

package attacks

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// tokens are all secrets that the tests have used; see TestNoSecretLeaks.
var tokens []string

// invited is the invitation of a site, to which the electors have agreed.
func invited(t *testing.T, site string, more map[string]any) (token string, v invitation.Invitation) {
	t.Helper()
	token, err := shared.Sites[0].InviteWith(within(t), site, more, shared.Sites[1])
	must(t, err)
	tokens = append(tokens, token)
	v, err = invitation.Parse(token)
	must(t, err)
	return token, v
}

// isMember reports whether a site was admitted.
func isMember(t *testing.T, site string) bool {
	t.Helper()
	all, err := shared.Sites[0].Members(within(t))
	must(t, err)
	for _, m := range all {
		if m.Site == site {
			return true
		}
	}
	return false
}

// refusedJoin uses an invitation, and returns why it is refused.
func refusedJoin(t *testing.T, v *invitation.Invitation, key identity.Key) string {
	t.Helper()
	who, err := intruder.Holder(v.Site, key, dataOf(shared.Sites[2]))
	must(t, err)
	_, err = who.Asking().Join(within(t), v, key)
	if !errors.Is(err, enroll.ErrRefused) {
		t.Errorf("the invitation of %s is not refused: %v", v.Site, err)
		return ""
	}
	return err.Error()
}

// TestInvitationIsForOne: a text that was used is of no use to another key.
func TestInvitationIsForOne(t *testing.T) {
	attacked(t)
	token, v := invited(t, "used", map[string]any{"vote": false})
	_, err := intruder.Admitted(within(t), t.TempDir(), token)
	must(t, err)
	if why := refusedJoin(t, &v, identity.Generate()); !strings.Contains(why, "was used, with another key") {
		t.Error(why)
	}
}

// TestInvitationExpires: after its time it admits nobody.
func TestInvitationExpires(t *testing.T) {
	attacked(t)
	_, v := invited(t, "late", map[string]any{"vote": false, "for": "1s"})
	var why string
	await(t, "the invitation's time is over", func() error {
		list, _, err := shared.Sites[0].Do(t.Context(), "GET", "/v1/invitations", nil, nil)
		if err == nil && !bytes.Contains(list, []byte(`"expired"`)) {
			err = errNotYet
		}
		return err
	})
	if why = refusedJoin(t, &v, identity.Generate()); !strings.Contains(why, "time is over") || isMember(t, "late") {
		t.Error(why)
	}
}

// TestInvitationsOfOthers: a text for another federation, of a key that nobody knows, or with another name admits
// nobody.
func TestInvitationsOfOthers(t *testing.T) {
	attacked(t)
	_, good := invited(t, "wanted", map[string]any{"vote": false})
	for what, c := range map[string]struct {
		spoil func(v *invitation.Invitation)
		says  string
	}{
		"of a foreign federation": {func(v *invitation.Invitation) { v.Federation[0]++ }, "this is federation"},
		"of an unknown key":       {func(v *invitation.Invitation) { v.Seed[0]++ }, "no such invitation"},
		"with another name":       {func(v *invitation.Invitation) { v.Site = "site-2" }, "another site's name"},
	} {
		v := good
		c.spoil(&v)
		if why := refusedJoin(t, &v, identity.Generate()); !strings.Contains(why, c.says) {
			t.Errorf("an invitation %s: %s", what, why)
		}
	}
	if isMember(t, "wanted") {
		t.Error("somebody was admitted")
	}
}

// TestMistypedInvitation: a broker that is given a damaged text says so in a line that holds none of it, and asks
// nobody.
func TestMistypedInvitation(t *testing.T) {
	attacked(t)
	token, _ := invited(t, "typo", map[string]any{"vote": false})
	half := len(token) / 2
	for what, text := range map[string]string{
		"cut off":          token[:half],
		"two letters":      token[:half] + string(token[half+1]) + string(token[half]) + token[half+2:],
		"another letter":   token[:half] + flipped(token[half]) + token[half+1:],
		"no invitation":    "cst_" + token[4:],
		"two of them":      token + token,
		"nothing whatever": "",
	} {
		if text == token {
			continue // two equal letters
		}
		out := brokerFails(
			t,
			text,
			"--site",
			"typo",
			"--data-dir",
			t.TempDir()+"/new",
			"--http",
			solo.FreeAddress(t),
			"--peer",
			solo.FreeAddress(t),
			"--join",
			"-",
		)
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "invitation") ||
			len(text) > 20 && strings.Contains(out, text[4:20]) {
			t.Errorf("%s:\n%s", what, out)
		}
	}
	if isMember(t, "typo") {
		t.Error("it was admitted")
	}
}

func flipped(letter byte) string {
	if letter == 'a' {
		return "b"
	}
	return "a"
}

// brokerFails runs a broker that must end by itself with exit code 2, and returns what it prints.
func brokerFails(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t), solo.Binary, append([]string{"broker"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("the broker ends with %v\n%s", err, out)
	}
	return string(out)
}

// TestSwappedKey: who passes an admission on puts no other key in, neither a stranger at the peer port nor a member.
func TestSwappedKey(t *testing.T) {
	attacked(t)
	_, v := invited(t, "swapped", map[string]any{"vote": false})
	honest, thief := identity.Generate(), identity.Generate()
	good := enroll.Admission(&v, honest)
	swapped := *good
	swapped.Key = signature.Key(thief.Public())
	resigned := swapped // by the thief's own key, but not by the invitation's
	copy(resigned.ByKey[:], thief.Sign(command.SignedAdmission, resigned.Signed(v.Federation)...))
	renamed := *good
	renamed.Site = "site-2"
	who := mallory(t)
	for what, c := range map[string]struct {
		body *command.Admit
		by   identity.Key
	}{
		"swapped": {&swapped, thief}, "signed again": {&resigned, thief}, "renamed": {&renamed, honest},
	} {
		if a := enrolls(t, c.by, c.body); a["verdict"] != "refused" {
			t.Errorf("%s: %v", what, a)
		}
		if _, err := who.order(t, who.own(c.body)); err != nil {
			t.Error(err)
		}
	}
	if isMember(t, "swapped") {
		t.Error("the thief was admitted")
	}
	if a := enrolls(t, thief, good); a["verdict"] != "refused" {
		t.Errorf("copied: %v", a)
	}
	if isMember(t, "swapped") {
		t.Error("who copied an admission used it")
	}
	if a := enrolls(t, honest, good); a["verdict"] != "admitted" {
		t.Errorf("the honest one: %v", a)
	}
	if a := enrolls(t, thief, &swapped); a["verdict"] != "refused" {
		t.Errorf("swapped afterwards: %v", a)
	}
}

// enrolls sends a command that proves itself to the first broker, as the holder of a key.
func enrolls(t *testing.T, by identity.Key, body command.Body) map[string]any {
	t.Helper()
	who, err := intruder.Holder("x", by, dataOf(shared.Sites[2]))
	must(t, err)
	a, err := who.AskAt(within(t), peerOf(t, shared.Sites[0]), relay.KindEnroll, map[string]any{
		"federation": hexOf(who.Group),
		"command":    command.Append(nil, command.Command{ID: command.ID{Site: who.Site}, Body: body}),
	})
	must(t, err)
	return a
}

// TestStrangersCommands: at the kind for strangers only commands that prove themselves are taken.
func TestStrangersCommands(t *testing.T) {
	attacked(t)
	for kind, body := range forgeries(t, shared.Sites[1]) {
		if a := enrolls(t, identity.Generate(), body); a["verdict"] != "refused" {
			t.Errorf("kind %d: %v", kind, a)
		}
	}
}

// TestReplayedRekey: a site's key is replaced by who has it, once: neither is the old command taken again, nor is the
// old key good for anything.
func TestReplayedRekey(t *testing.T) {
	attacked(t)
	who := admit(t, "rekeyed")
	next := identity.Generate()
	first := rekey(who.Group, "rekeyed", 0, who.Key, next)
	if a := enrolls(t, next, first); a["verdict"] != "admitted" {
		t.Fatalf("%v", a)
	}
	third := identity.Generate()
	if a := enrolls(t, third, rekey(who.Group, "rekeyed", 1, next, third)); a["verdict"] != "admitted" {
		t.Fatalf("%v", a)
	}
	thief := identity.Generate()
	taken := keyOf(t, shared.Sites[1]).Key
	for what, c := range map[string]struct {
		body *command.Rekey
		by   identity.Key
	}{
		"replayed": {first, next}, "by the first key": {rekey(who.Group, "rekeyed", 2, who.Key, thief), thief},
		"by the second":      {rekey(who.Group, "rekeyed", 2, next, thief), thief},
		"by nobody":          {rekey(who.Group, "site-2", 0, thief, thief), thief},
		"to a taken key":     {rekey(who.Group, "rekeyed", 2, third, taken), taken},
		"brought by another": {rekey(who.Group, "rekeyed", 2, third, next), thief},
	} {
		if a := enrolls(t, c.by, c.body); a["verdict"] != "refused" {
			t.Errorf("%s: %v", what, a)
		}
	}
	for _, s := range shared.Sites {
		await(t, s.Name+" refuses the first key", func() error {
			if _, err := who.Dial(t.Context(), peerOf(t, s), relay.KindForward); !errors.Is(err, relay.ErrUnknownKey) {
				return errNotYet
			}
			return nil
		})
	}
}

// rekey replaces a key by another one.
func rekey(federation [16]byte, site string, generation uint64, by, to identity.Key) *command.Rekey {
	b := &command.Rekey{Site: site, Generation: generation, Key: signature.Key(to.Public())}
	copy(b.By[:], by.Sign(command.SignedKey, b.Signed(federation)...))
	copy(b.ByNew[:], to.Sign(command.SignedKey, b.Signed(federation)...))
	return b
}

// brokerEnds is brokerFails for whatever exit code but 0.
func brokerEnds(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t), solo.Binary, append([]string{"broker"}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 1 {
		t.Errorf("the broker ends with %v\n%s", err, out)
	}
	return string(out)
}
