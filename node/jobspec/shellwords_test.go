package jobspec

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestShellWordsComeBack checks that bash reads every word back as it was.
func TestShellWordsComeBack(t *testing.T) {
	words := []string{
		"sh", "-c", "echo $HOME; a='b' \"c\" `d` \\ !x", "", "é 漢", "a\nb\tc\x01", "it's\na \\ b",
		"\u202egnp.exe\u200b", "~", "{a,b}", "a=b", "#x", "*", "=x", "^a", "x\uFFFD",
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

// testOrRapid is the part of *testing.T that *rapid.T shares.
type testOrRapid interface {
	Helper()
	Fatalf(format string, args ...any)
}

// printed has a real shell print the words that it reads, each ended by a NUL byte.
func printed(t testOrRapid, shell, line string) string {
	t.Helper()
	out, err := exec.Command(shell, "-c", `printf '%s\0' `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", shell, err, line)
	}
	return string(out)
}

// TestAnyShellWordsComeBack checks that bash reads words of any bytes back from one printable line,
// and that any sh does if all of them are printable.
func TestAnyShellWordsComeBack(t *testing.T) {
	odd := []string{
		" ", "'", "\"", "\n", "$", "$HOME", "`id`", "$(id)", "\\", "~", "-", "=", "!", "#", "*", "?", "{a,b}", "[a]", ";", "&", "|", "<", ">", "%",
		"\t", "\x01", "\x7f", "\u200b", "\u202e", "\uFFFD", "\xff", "\xc3", "é", "漢", "🙂", "a", "0", "x=y",
	}
	word := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(odd), 0, 6).Draw(rt, "parts"), "")
	})
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(word, 1, 5).Draw(rt, "words")
		line, want := ShellWords(words), strings.Join(words, "\x00")+"\x00"
		if strings.ContainsFunc(line, Unprintable) || !utf8.ValidString(line) {
			rt.Fatalf("%q is shown as %q", words, line)
		}
		if got := printed(rt, "bash", line); got != want {
			rt.Fatalf("%q came back as %q from %s", words, got, line)
		}
		if strings.Contains(line, "$'") {
			return
		}
		if got := printed(rt, "sh", line); got != want {
			rt.Fatalf("%q came back from sh as %q from %s", words, got, line)
		}
	})
}
