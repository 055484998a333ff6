package script

import (
	"errors"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestDirectives: those before the first command count, and no others.
func TestDirectives(t *testing.T) {
	s, err := Parse([]byte(`#!/bin/sh -e
# a comment
#CLOUDSHARE --cpu 4 --memory 2Gi # of each task

#CLOUDSHARE
#CLOUDSHAREX --gpu 1
 #CLOUDSHARE --gpu 2
#cloudshare --gpu 3
# CLOUDSHARE --gpu 4
#CLOUDSHARE	--label 'a=two words' --output out/*.csv
echo hello
#CLOUDSHARE --cpu 8
#CLOUDSHARE --cpu 9
`))
	want := []Directive{
		{3, []string{"--cpu", "4", "--memory", "2Gi"}},
		{10, []string{"--label", "a=two words", "--output", "out/*.csv"}},
	}
	if err != nil || !reflect.DeepEqual(s.Directives, want) || s.Late != 12 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestBadScripts: each is refused with the line and one sentence.
func TestBadScripts(t *testing.T) {
	for text, why := range map[string]string{
		"":                                   "1: the script is empty",
		"echo hello\n":                       "1: does not begin with #!",
		"\n#!/bin/sh\n":                      "1: does not begin with #!",
		"#!\n":                               "1: names no program",
		"#!/bin/sh\r\necho\r\n":              "1: ends with CR LF",
		"#!/bin/sh\n#CLOUDSHARE --cpu 4\r\n": "2: ends with CR LF",
		"#!/bin/sh\n#CLOUDSHARE --name \x1b[31m\n":                       "2: holds control",
		"#!/bin/sh\n#CLOUDSHARE --name a\u202eb\n":                       "2: holds control",
		"#!/bin/sh\n#CLOUDSHARE --name a\x00b\n":                         "2: holds control",
		"#!/bin/sh\n#CLOUDSHARE --name \xff\n":                           "2: is not UTF-8",
		"#!/bin/sh\n#CLOUDSHARE --name 'a\n":                             "2: a quote has no end",
		"#!/bin/sh\n#CLOUDSHARE --name \"a\n":                            "2: a quote has no end",
		"#!/bin/sh\n#CLOUDSHARE --name a\\\n":                            "2: a backslash ends",
		"#!/bin/sh\n\n#CLOUDSHARE --env H=$HOME\n":                       "3: $ is not evaluated",
		"#!/bin/sh\n#CLOUDSHARE --env \"H=`id`\"\n":                      "2: ` is not evaluated",
		"#!/bin/sh\n#CLOUDSHARE --cpu 4; rm -r x\n":                      "2: ; has a meaning",
		"#!/bin/sh\n#CLOUDSHARE --name >x\n":                             "2: > has a meaning",
		"#!/bin/sh\n" + strings.Repeat("# x\n", maxHeader/4):             "bytes before the first command",
		"#!/bin/sh\n" + strings.Repeat("#CLOUDSHARE x\n", 1000) + "echo": "258: is one directive too many",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", text, err, why)
		}
	}
}

// TestWordsAreTheShells: what is not refused has the words that sh makes of it.
func TestWordsAreTheShells(t *testing.T) {
	for _, line := range []string{
		"a b", "  a\t b ", "''", `a''b`, `'a b'"c d"e`, `\a\ b`, `"\a\"\\\$"`, `'\'`, `"a'b"`, `'a"b'`, "a#b #c", `\#a`, `"" x`,
	} {
		got, err := Split(line)
		out, bad := exec.Command("sh", "-c", `set -f; for w in `+line+"\n do printf '%s\\n' \"$w\"; done").Output()
		want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if err != nil || bad != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; sh has %q, %v", line, got, err, want, bad)
		}
	}
}

// FuzzParse: whatever a script holds, it is read or refused with a line of it; words that are written for a shell come
// back.
func FuzzParse(f *testing.F) {
	f.Add("#!/bin/sh\n#CLOUDSHARE --cpu 4 'a b' \"c\\\"d\" \\e # f\necho\n#CLOUDSHARE\n", "a b", "'\"\\$`")
	f.Add("#!/bin/sh\r\n", "", "*")
	f.Add("#!x\n#CLOUDSHARE \xff'\n", "é", "#")
	f.Fuzz(func(t *testing.T, text, first, second string) {
		s, err := Parse([]byte(text))
		var wrong *LineError
		switch {
		case errors.As(err, &wrong):
			if wrong.Line < 1 || wrong.Line > strings.Count(text, "\n")+1 || strings.ContainsAny(wrong.Reason, "\n\r\x00\x1b") {
				t.Errorf("%q: %v", text, err)
			}
		case err != nil:
			t.Errorf("%q: %v", text, err)
		}
		for _, d := range s.Directives {
			if len(d.Words) == 0 || d.Line < 2 {
				t.Errorf("%q: %+v", text, d)
			}
		}
		words := []string{first, second}
		line := jobspec.ShellWords(words)
		if strings.Contains(line, "$'") || strings.ContainsAny(first+second, "\n") {
			return // not every shell's quoting
		}
		if got, err := Split(line); err != nil || !slices.Equal(got, words) {
			t.Errorf("%q: %q, %v; want %q", line, got, err, words)
		}
	})
}

// TestNearDirectivesAreTold: a comment that has flags behind the marker, but for spaces or its case, is told: whoever
// wrote it would wonder why it counts for nothing. Other comments are nobody's matter.
func TestNearDirectivesAreTold(t *testing.T) {
	for line, near := range map[string]bool{
		"#CLOUDSHARE--cpu 4": true, " #CLOUDSHARE --cpu 4": true, "# CLOUDSHARE --cpu 4": true, "#cloudshare -cpu 4": true,
		"#CloudShare: --cpu 4": true,
		"#CLOUDSHARE --cpu 4":  false, "##CLOUDSHARE --cpu 4": false, "# cloudshare runs this": false, "#CLOUDSHAREX --cpu 4": false,
		"# cloudshare": false, "#": false, "": false,
	} {
		s, err := Parse([]byte("#!/bin/sh\n" + line + "\ntrue\n"))
		if err != nil || (s.Near == 2) != near || s.Near == 0 == near {
			t.Errorf("%q: %+v, %v", line, s, err)
		}
	}
	if s, err := Parse([]byte("#!/bin/sh\ntrue\n# CLOUDSHARE --cpu 4\n")); err != nil || s.Near != 0 {
		t.Errorf("behind the first command: %+v, %v", s, err)
	}
}
