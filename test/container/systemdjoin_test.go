//go:build container

package container

import (
	"errors"
	"strings"
	"testing"
)

// edit changes a file of the machine.
func (m *machine) edit(path, expression string) {
	m.t.Helper()
	m.run("sed", "-i", expression, path)
}

// TestSystemdJoins: the unit joins by an invitation in root's file, which its user cannot read, and needs it no more
// once it is in; neither the journal nor the list of processes shows it.
func TestSystemdJoins(t *testing.T) {
	m := boot(t)
	m.run("systemd-sysusers")
	m.run("systemd-run", "--unit=founder", "cloudshare", "broker", "--site=founder", "--bootstrap", "--data-dir=/var/founder",
		"--http=127.0.0.2:7700", "--peer=127.0.0.2:7701", "--gossip=127.0.0.2:7702")
	founder := []string{"--addr=http://127.0.0.2:7700", "--token-file=/var/founder/token"}
	m.run(append([]string{"/usr/local/bin/cloudshare", "invite", "lab-a", "--if-needed", "--out=/etc/cloudshare/invitation"},
		founder...)...)
	secret := strings.TrimSpace(m.run("cat", "/etc/cloudshare/invitation"))
	m.edit("/etc/cloudshare/broker.yaml", `s,^bootstrap: true .*,join: "@/run/credentials/cloudshare.service/invitation",`)
	m.run("systemctl", "enable", "--now", "cloudshare")
	alive := func() error {
		out, err := m.try("cloudshare", "sites")
		if err == nil && strings.Count(out, " alive ") != 2 {
			err = errors.New(out)
		}
		return err
	}
	await(t, "both sites are alive", alive)
	if out := m.run("stat", "-c", "%a %U", "/etc/cloudshare/invitation"); out != "600 root\n" {
		t.Errorf("the invitation's file is %s", out)
	}
	seen := m.run("sh", "-c", "journalctl --no-pager; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '")
	if strings.Contains(seen, secret) || !strings.Contains(seen, "lab-a") {
		t.Errorf("the journal or a process shows the invitation, or nothing:\n%s", seen)
	}
	m.run("rm", "/etc/cloudshare/invitation")
	m.run("systemctl", "restart", "cloudshare")
	await(t, "both sites are alive again", alive)
}
