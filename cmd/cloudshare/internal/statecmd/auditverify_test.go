package statecmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/replica"
)

// audit runs the commands on a history.
func audit(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, func(a *cli.App) []*cobra.Command {
		return []*cobra.Command{AuditExport(a), AuditVerify(a)}
	}, "", args...)
}

// keptBySite1 returns the data_dir of a broker that has founded a federation, and its key.
func keptBySite1(t *testing.T) (dir string, key identity.Public) {
	t.Helper()
	dir = t.TempDir()
	founder := identity.FromSeed([32]byte{1})
	k, err := history.Open(history.Config{
		Dir: filepath.Join(dir, history.Folder), MaxBytes: 16 << 20, Site: "site-1", Logger: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := replica.NewReplica()
	r.KeepHistory(k)
	for _, c := range []command.Command{
		{ID: command.ID{Site: "site-1"}, Body: &command.Genesis{
			Federation: [16]byte{7}, Params: command.DefaultParams(), Founder: signature.Key(founder.Public()),
		}},
		{ID: command.ID{Site: "site-1"}, Body: &command.Register{
			Node: founder.Public().Node(), Boot: [16]byte{1}, HTTP: "h:1", Peer: "h:2", MaxVersion: fsm.Version,
		}},
	} {
		b := command.Batch{Term: 1, Commands: []command.Command{c}, Bundles: []command.Bundle{
			command.SignBundle([16]byte{7}, "site-1", 1, command.Append(nil, c), founder.Sign),
		}}
		if _, err := r.Apply(b.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, founder.Public()
}

// A history is exported and gone through; a key that was told by another way is compared.
func TestAuditExportAndVerify(t *testing.T) {
	dir, key := keptBySite1(t)
	file := filepath.Join(t.TempDir(), "fed.history")
	code, out, msg := audit(t, "export", file, "--data-dir", dir)
	if code != cli.ExitOK || !strings.Contains(out, "1 to 2") {
		t.Fatalf("export: exit %d, %s%s", code, out, msg)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	code, _, msg = audit(t, "export", file, "--data-dir", dir)
	if code != cli.ExitRefused || !strings.Contains(msg, "choose another name") {
		t.Errorf("export again: exit %d, %s", code, msg)
	}
	for _, path := range []string{file, dir} {
		code, out, msg = audit(t, "verify", path, "--key", "site-1="+key.String(), "--statements", file)
		if code != cli.ExitNotProven || !strings.HasPrefix(out, "NOT BACKED") || !strings.Contains(out, "Not proven by this:") {
			t.Errorf("verify %s: exit %d, %s%s", path, code, out, msg)
		}
	}
	other := identity.FromSeed([32]byte{2}).Public()
	code, out, _ = audit(t, "verify", file, "--key", "site-1="+other.String(), "-o", "json")
	var r replay.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitDiffers || r.Difference == nil ||
		r.Difference.Kind != replay.Key {
		t.Errorf("another key: exit %d, %v, %s", code, err, out)
	}
}

// A changed file ends with 6 and names what differs; what cannot be read, or was typed wrongly, is told in one line.
func TestAuditVerifyRefuses(t *testing.T) {
	dir, _ := keptBySite1(t)
	file := filepath.Join(t.TempDir(), "fed.history")
	if code, _, msg := audit(t, "export", file, "--data-dir", dir); code != cli.ExitOK {
		t.Fatal(msg)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(file, bytes.Replace(b, []byte("h:1"), []byte("x:1"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := audit(t, "verify", file); code != cli.ExitDiffers || !strings.Contains(out, "DIFFERS") {
		t.Errorf("changed: exit %d, %s", code, out)
	}
	for want, args := range map[string][]string{
		"SITE=KEY":        {"verify", file, "--key", "site-1"},
		"no such file":    {"verify", filepath.Join(dir, "nothing")},
		"data_dir":        {"verify", t.TempDir()},
		"either":          {"export", "x"},
		"is behind --to":  {"export", "x", "--data-dir", dir, "--from", "5", "--to", "4"},
		"ends with entry": {"export", filepath.Join(dir, "x"), "--data-dir", dir, "--from", "50"},
		"no history":      {"verify", "auditverify_test.go"},
	} {
		code, _, msg := audit(t, args...)
		if code != cli.ExitError && code != cli.ExitUsage || !strings.Contains(msg, want) || strings.Count(msg, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", args, code, msg)
		}
	}
}

// The first lines name who dissents, and say so where nobody stands for the ledger; nothing is counted below zero.
func TestVerdictOfAReport(t *testing.T) {
	gap := replay.Gap{Behind: 40, To: 90}
	signed := replay.Gap{Behind: 40, To: 90, SignedBy: []string{"site-1"}}
	for want, r := range map[string]replay.Report{
		"NOT BACKED": {Verdict: replay.NotProven, Gaps: []replay.Gap{gap}},
		"all agrees": {Verdict: replay.Proven, Gaps: []replay.Gap{signed}, Signed: replay.Point{SignedBy: []string{"site-1"}}},
		"DISSENT": {
			Verdict: replay.Differs,
			Dissent: []replay.Difference{{Entry: 7, Site: "site-3", What: "site-3 has signed another state"}},
		},
	} {
		r.Signed.Entry, r.End.Entry = 95, 93
		var b bytes.Buffer
		showReport(&b, &r)
		first, _, _ := strings.Cut(b.String(), "\n")
		if !strings.HasPrefix(first, want) || strings.Contains(b.String(), "not signed yet") {
			t.Errorf("%s: %s", want, b.String())
		}
	}
}

// A script learns by the exit code whether a history is proven: agreement, a difference, no proof, and a file that
// cannot be gone through each have their own.
func TestExitCodesOfAuditVerify(t *testing.T) {
	for verdict, want := range map[string]int{
		replay.Proven: cli.ExitOK, replay.Differs: cli.ExitDiffers, replay.NotProven: cli.ExitNotProven,
	} {
		if got := cli.CodeOf(verdictExit(&replay.Report{Verdict: verdict})); got != want {
			t.Errorf("%s: exit %d, want %d", verdict, got, want)
		}
	}
	if code, _, _ := audit(t, "verify", t.TempDir()); code != cli.ExitError {
		t.Errorf("nothing to go through: exit %d", code)
	}
}
