package node

import (
	"os/exec"
	"testing"
)

// TestShellWordsComeBack: bash takes every word back as it was.
func TestShellWordsComeBack(t *testing.T) {
	words := []string{
		"sh", "-c", "echo $HOME; a='b' \"c\" `d` \\ !x", "", "é 漢", "a\nb\tc\x01", "it's\na \\ b", "\u202egnp.exe\u200b", "~", "{a,b}", "a=b", "#x", "*", "=x", "^a", "x\uFFFD",
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	line := ShellWords(words)
	out, err := exec.Command(bash, "-c", `printf '%s\0' `+line).Output()
	want := ""
	for _, w := range words {
		want += w + "\x00"
	}
	if err != nil || string(out) != want {
		t.Errorf("%s came back as %q, %v", line, out, err)
	}
	if got := ShellWords([]string{"make", "-C", "/srv/render", "A=1"}); got != "make -C /srv/render A=1" {
		t.Errorf("plain words: %s", got)
	}
}
