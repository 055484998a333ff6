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
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		t.Log("NOT PARSED: there is no apparmor_parser here (apt-get install apparmor)")
		return
	}
	if _, err = os.Stat("/etc/apparmor.d/abi/4.0"); err != nil {
		t.Log("PARSED BUT FOR userns: this apparmor_parser is older than 4.0")
		profile = strings.NewReplacer("abi/4.0", "abi/3.0", "  userns,\n", "").Replace(profile)
	}
	file := filepath.Join(t.TempDir(), "cloudshare")
	must(t, os.WriteFile(file, []byte(profile), 0o600))
	if out, err := exec.CommandContext(t.Context(), parser, "-Q", "-K", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
