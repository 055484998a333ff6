package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// documents are what people read; their command lines must exist.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"../../README.md"}
	for _, pattern := range []string{"*.md", "guide/*.md", "../../*/DESIGN.md", "../../*/*/DESIGN.md", "../../node/*.md", "../../node/sim/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// written is a command line in a document.
type written struct {
	line   int
	words  []string // after "cloudshare"
	inline bool     // in running text: it may lack its arguments
}

var inlineCommand = regexp.MustCompile("`cloudshare ([^`]*)`")

// commandLines finds them in code blocks for a shell and in running text.
func commandLines(doc string) (found []written) {
	block, prose := "", ""
	lines := strings.Split(doc, "\n")
	for i := 0; i < len(lines); i++ {
		line, at := lines[i], i+1
		if fence, info, ok := strings.Cut(line, "```"); ok && fence == "" {
			words := strings.Fields(info + " x")
			if block == "" {
				block = words[0]
			} else {
				block = ""
			}
			prose += "\n"
			continue
		}
		if block == "" {
			prose += line + "\n"
			continue
		}
		prose += "\n"
		command, typed := strings.CutPrefix(line, "$ ")
		if block != "sh" && (block != "console" || !typed) {
			continue
		}
		for strings.HasSuffix(command, "\\") && i+1 < len(lines) {
			i++
			prose += "\n"
			command = strings.TrimSuffix(command, "\\") + lines[i]
		}
		for _, words := range shellCommands(command) {
			if words[0] == "cloudshare" {
				found = append(found, written{line: at, words: words[1:]})
			}
		}
	}
	for _, m := range inlineCommand.FindAllStringSubmatchIndex(prose, -1) {
		at := strings.Count(prose[:m[0]], "\n") + 1
		for _, words := range shellCommands(strings.Join(strings.Fields("cloudshare "+prose[m[2]:m[3]]), " ")) {
			found = append(found, written{line: at, words: words[1:], inline: true})
		}
	}
	return found
}

// isPlaceholder: COMMAND, FILE and … stand for what a reader fills in.
func isPlaceholder(word string) bool {
	return word == "…" || word != "" && word == strings.ToUpper(word) && strings.ToLower(word) != word
}

// check holds a command line against the tree: command, flags, their values
// and the number of arguments.
func (w written) check(root *cobra.Command) error {
	if len(w.words) > 0 && isPlaceholder(w.words[0]) {
		return nil
	}
	cmd, rest, err := root.Find(w.words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	var args []string
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		if word == "--" {
			args = append(args, rest[i+1:]...)
			break
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			args = append(args, word)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		f := flagOf(cmd, word, name)
		if f == nil {
			return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), word)
		}
		if f.Name == "help" {
			return nil
		}
		if f.NoOptDefVal == "" && !hasValue && i+1 < len(rest) {
			i++
			value, hasValue = rest[i], true
		}
		if hasValue && !isPlaceholder(value) && !strings.Contains(value, "$") && value != "substituted" {
			if err := f.Value.Set(value); err != nil {
				return fmt.Errorf("%s %s: %w", word, value, err)
			}
			f.Changed = true
		}
	}
	if w.inline || strings.Contains(strings.Join(args, " "), "…") {
		return nil
	}
	return cmd.ValidateArgs(args)
}

func flagOf(cmd *cobra.Command, word, name string) *pflag.Flag {
	if strings.HasPrefix(word, "--") {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f
		}
		return cmd.InheritedFlags().Lookup(name)
	}
	if f := cmd.Flags().ShorthandLookup(name); f != nil {
		return f
	}
	return cmd.InheritedFlags().ShorthandLookup(name)
}

// TestDocumentsUseTheCommandLine: whoever types what a document says is
// understood.
func TestDocumentsUseTheCommandLine(t *testing.T) {
	commands := 0
	for _, path := range documents(t) {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range commandLines(string(doc)) {
			commands++
			a := &cli.App{Getenv: func(string) string { return "" }}
			root := newRoot(a)
			root.InitDefaultCompletionCmd()
			root.InitDefaultHelpCmd()
			if err := w.check(root); err != nil {
				t.Errorf("%s:%d: cloudshare %s: %v", path, w.line, strings.Join(w.words, " "), err)
			}
		}
	}
	if commands < 50 {
		t.Errorf("only %d command lines were found: is the search broken?", commands)
	}
}

// TestGuidesNameEveryCommand: what nobody reads of is not used.
func TestGuidesNameEveryCommand(t *testing.T) {
	var all strings.Builder
	for _, topic := range guideTopics {
		doc, err := guides.ReadFile("guide/" + topic.name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		all.Write(doc)
	}
	a := &cli.App{Getenv: func(string) string { return "" }}
	for _, cmd := range newRoot(a).Commands() {
		if name := cmd.CommandPath(); !cmd.Hidden && !strings.Contains(all.String(), name) {
			t.Errorf("no guide names %s", name)
		}
	}
}

func TestDocumentCommandsAreFound(t *testing.T) {
	const doc = "text `cloudshare why JOB` and\n`cloudshare jobs\n--bogus` here\n```console\n$ A=1 cloudshare jobs --limit 3 | head -1 # --no\n" +
		"output cloudshare no\n$ kill $(cloudshare xyzzy)\n```\n```sh\ncloudshare submit \\\n  --count 2 -- x --y; echo \"$(cloudshare sites extra)\"\n```\n"
	a := &cli.App{Getenv: func(string) string { return "" }}
	var got []string
	for _, w := range commandLines(doc) {
		got = append(got, fmt.Sprintf("%d %s: %v", w.line, strings.Join(w.words, " "), w.check(newRoot(a))))
	}
	want := []string{
		"5 jobs --limit 3: <nil>",
		`7 xyzzy: unknown command "xyzzy"; see cloudshare --help`,
		"10 submit --count 2 -- x --y: <nil>",
		`10 sites extra: unknown command "extra" for "cloudshare sites"; see cloudshare sites --help`,
		"1 why JOB: <nil>",
		"2 jobs --bogus: cloudshare jobs has no flag --bogus",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
