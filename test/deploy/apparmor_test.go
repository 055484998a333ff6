package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAppArmor: the profile is the program's that the unit starts, lets it make user
// namespaces, and is one that AppArmor's own parser takes. A parser before 4.0 knows no
// such rule: it reads all else.
func TestAppArmor(t *testing.T) {
	profile := read(t, files, "systemd", "cloudshare.apparmor")
	if !strings.Contains(profile, "\n  userns,\n") || !strings.Contains(profile, "/usr/{,local/}bin/cloudshare ") {
		t.Errorf("the profile allows no user namespace, or is not the program's:\n%s", profile)
	}
	if unit := read(t, files, "systemd", "cloudshare.service"); !strings.Contains(unit, "ExecStart=/usr/local/bin/cloudshare ") {
		t.Error("the unit starts another program than the profile is for")
	}
	out, err := exec.CommandContext(t.Context(), "bash", "../../.ci/apparmor", "path").CombinedOutput()
	must(t, err)
	parser, version, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !found {
		t.Log("NOT PARSED: there is no apparmor_parser here (.ci/apparmor install)")
		return
	}
	if version != "4" {
		t.Log("PARSED BUT FOR userns: this apparmor_parser is older than 4.0 (.ci/apparmor install)")
		profile = strings.NewReplacer("abi/4.0", "abi/3.0", "  userns,\n", "").Replace(profile)
	}
	if said, err := parse(t, parser, profile); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	if said, err := parse(t, parser, strings.Replace(profile, "include", "inclood", 1)); err == nil {
		t.Errorf("this parser takes anything:\n%s", said)
	}
}

// parse has AppArmor's parser compile a profile for no kernel.
func parse(t *testing.T, parser, profile string) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cloudshare")
	must(t, os.WriteFile(file, []byte(profile), 0o600))
	return exec.CommandContext(t.Context(), parser, "-Q", "-K", file).CombinedOutput()
}
