package main

import (
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// guides are the documents in the binary, so that they can be read offline and
// fit the version that shows them. api.md is made by `make docs`.
//
//go:embed guide/*.md
var guides embed.FS

// guideTopics in the order in which they are best read.
var guideTopics = []struct{ name, short string }{
	{"user", "submit work, follow it, script it"},
	{"workflows", "run Snakemake and other engines of workflows on the federation"},
	{"operator", "run a site: join, lend, drain, back up, and what to do when …"},
	{"threats", "who could do what to you: what holds, what does not, and what to do"},
	{"audit", "what your federation can prove to an auditor, and what nobody can"},
	{"scale", "how large a federation can be, and what each site adds"},
	{"concepts", "words, a job's way, the promises and what they rest on, fairness"},
	{"policies", "whose turn it is: the policies and their knobs"},
	{"simulator", "what the policies do to real workloads"},
	{"api", "every route of the HTTP API"},
}

func guideCommand(a *cli.App) *cobra.Command {
	var names []string
	var list strings.Builder
	for _, t := range guideTopics {
		names = append(names, t.name)
		fmt.Fprintf(&list, "\n  %-10s %s", t.name, t.short)
	}
	return &cobra.Command{
		Use: "guide [TOPIC]", Short: "Read the guides, offline",
		Long: `Read the guides, in Markdown; without a TOPIC, the user guide. On a terminal they
come through $PAGER or less.
` + list.String(),
		Example: `  cloudshare guide
  cloudshare guide operator
  cloudshare guide concepts > concepts.md`,
		ValidArgs: names, Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			return showGuide(a, append(args, guideTopics[0].name)[0])
		},
	}
}

// showGuide prints a guide that exists.
func showGuide(a *cli.App, topic string) error {
	doc, err := guides.ReadFile("guide/" + topic + ".md")
	if err != nil {
		return fmt.Errorf("read guide %s: %w", topic, err)
	}
	if cli.IsTerminal(a.Out) {
		return showPage(a, string(doc))
	}
	if _, err := a.Out.Write(doc); err != nil {
		return fmt.Errorf("write guide: %w", err)
	}
	return nil
}

// showPage shows text on a terminal a page at a time, if there is a pager.
func showPage(a *cli.App, text string) error {
	line := a.Getenv("PAGER")
	if line == "" {
		line = "less -FRX"
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		words = []string{"cat"}
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		_, err = io.WriteString(a.Out, text)
		return err
	}
	pager := exec.Command(path, words[1:]...)
	pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), a.Out, a.Err
	pager.Env = os.Environ()
	if err := pager.Run(); err != nil {
		return fmt.Errorf("show guide with %s: %w", path, err)
	}
	return nil
}
