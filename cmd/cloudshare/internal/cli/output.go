package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// FormatsKey annotates a command with a further form that its -o takes.
const FormatsKey = "formats"

// checkFormat refuses an unknown -o before anything is done.
func (a *App) checkFormat(cmd *cobra.Command) error {
	more := cmd.Annotations[FormatsKey]
	switch {
	case a.Format == "table", a.Format == "json", a.Format == "yaml", more != "" && a.Format == more:
		return nil
	case more != "":
		return Usage("-o %q: must be table, json, yaml or %s", a.Format, more)
	}
	return Usage("-o %q: must be table, json or yaml", a.Format)
}

// Show writes v as -o asks; table writes it for people.
func (a *App) Show(v any, table func(w io.Writer)) error {
	switch a.Format {
	case "json":
		return WriteJSON(a.Out, v)
	case "yaml":
		return WriteYAML(a.Out, v)
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	table(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// WriteJSON writes v with indents, and text as it is.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// WriteYAML goes through JSON, so that both forms have the same names. JSON is
// YAML: reading it as YAML keeps the order of fields.
func WriteYAML(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	block(&doc)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	return enc.Close()
}

// block turns JSON's flow style and quotes into YAML's own.
func block(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}

// Row writes one line of a table.
func Row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, Cell(c))
	}
	fmt.Fprintln(w)
}

// Cell words a value in a table: nothing is a dash, and no value breaks a line.
func Cell(v any) string {
	var text string
	switch v := v.(type) {
	case time.Time:
		text = v.Local().Format(time.DateTime)
	case *time.Time:
		if v != nil {
			text = v.Local().Format(time.DateTime)
		}
	case *int:
		if v != nil {
			text = fmt.Sprint(*v)
		}
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		text = fmt.Sprint(v)
	}
	if text == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if jobspec.Unprintable(r) {
			return ' '
		}
		return r
	}, text)
}

// YesNo words a bool.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Plural counts things in words.
func Plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// IsTerminal reports whether w is one.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
