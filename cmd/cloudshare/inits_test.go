package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// maxInit is what a package of ours may allocate before main, in bytes.
const maxInit = 128 << 10

// TestInitsAreSmall: this program is the broker, and every command line, and what supervises each task. So what a
// package prepares before main, such as parsing the pages' templates, each task would wait for.
func TestInitsAreSmall(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	inits := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, `).FindAllStringSubmatch(string(out), -1)
	ours := 0
	for _, of := range inits {
		if !strings.HasPrefix(of[1], "github.com/cloudshare/") {
			continue
		}
		ours++
		if n, err := strconv.Atoi(of[2]); err != nil || n > maxInit {
			t.Errorf("%s allocates %s bytes before main, at most %d are meant: prepare it at its first use", of[1], of[2], maxInit)
		}
	}
	if ours == 0 {
		t.Errorf("no package of ours among %d inits: %s", len(inits), out)
	}
}
