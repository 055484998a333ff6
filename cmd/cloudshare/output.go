package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/cloudshare/cloudshare/node"
)

// formatsKey annotates a command with a further form that its -o takes.
const formatsKey = "formats"

// checkFormat refuses an unknown -o before anything is done.
func (a *app) checkFormat(cmd *cobra.Command) error {
	more := cmd.Annotations[formatsKey]
	switch {
	case a.format == "table", a.format == "json", a.format == "yaml", more != "" && a.format == more:
		return nil
	case more != "":
		return usage("-o %q: must be table, json, yaml or %s", a.format, more)
	}
	return usage("-o %q: must be table, json or yaml", a.format)
}

// show writes v as -o asks; table writes it for people.
func (a *app) show(v any, table func(w io.Writer)) error {
	switch a.format {
	case "json":
		return writeJSON(a.out, v)
	case "yaml":
		return writeYAML(a.out, v)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	table(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// writeYAML goes through JSON, so that both forms have the same names. JSON is
// YAML: reading it as YAML keeps the order of fields.
func writeYAML(w io.Writer, v any) error {
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

// row writes one line of a table.
func row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, cell(c))
	}
	fmt.Fprintln(w)
}

// cell words a value in a table: nothing is a dash, and no value breaks a line.
func cell(v any) string {
	var text string
	switch v := v.(type) {
	case *time.Time:
		if v != nil {
			text = v.Local().Format("2006-01-02 15:04:05")
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
		if node.Unprintable(r) {
			return ' '
		}
		return r
	}, text)
}
