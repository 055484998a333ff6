package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Choice adds a flag that takes one of a few values; what to holds is the default. Any
// other is refused before a broker is asked, with those that are known; a shell offers
// them.
func Choice(cmd *cobra.Command, to *string, name string, known []string, usage string) {
	addChoice(cmd, &choice{known: known, text: *to, add: func(s string) { *to = s }}, name, usage)
}

// Choices is Choice of a flag that may be repeated.
func Choices(cmd *cobra.Command, to *[]string, name string, known []string, usage string) {
	addChoice(cmd, &choice{known: known, add: func(s string) { *to = append(*to, s) }}, name, usage)
}

func addChoice(cmd *cobra.Command, c *choice, name, usage string) {
	cmd.Flags().Var(c, name, usage)
	// of a new flag
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.known, cobra.ShellCompDirectiveNoFileComp))
}

// NewChoice returns the value of a flag that takes one of a few, with its default.
func NewChoice(value string, known []string) pflag.Value {
	return &choice{known: known, text: value, add: func(string) {}}
}

// choice is the value of a flag that takes one of those that are known.
type choice struct {
	known []string
	text  string // the last one given, or the default
	add   func(string)
}

// String implements pflag.Value.
func (c *choice) String() string { return c.text }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.known, text) {
		return fmt.Errorf("must be %s", oneOf(c.known))
	}
	c.text = text
	c.add(text)
	return nil
}

// oneOf lists words, with "or" before the last.
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
