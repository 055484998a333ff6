package jobcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// The forms of a graph.
const (
	graphTable = "table"
	graphDOT   = "dot"
)

// showGraphOf shows the jobs around one that wait for each other.
func showGraphOf(a *cli.App, cmd *cobra.Command, c *client.Client, id, as string) error {
	g, err := c.Graph(cmd.Context(), id, client.GraphQuery{})
	if err != nil {
		return err
	}
	for i := range g.Nodes {
		if g.Nodes[i].Job == g.Job {
			_, a.Over = cli.EndCodes[g.Nodes[i].State]
		}
	}
	if as == graphDOT {
		return a.Show(g, func(w io.Writer) { writeDOT(w, &g) })
	}
	return a.Show(g, func(w io.Writer) { writeGraph(w, &g) })
}

// writeGraph writes a row for each job, by number: what is waited for stands above what waits.
func writeGraph(w io.Writer, g *wire.JobGraph) {
	after := map[string][]wire.SpecAfter{}
	for _, e := range g.Edges {
		after[e.Job] = append(after[e.Job], wire.SpecAfter{Job: e.After, When: e.When})
	}
	cli.Row(w, "JOB", "WHERE", "NAME", "STATE", "AFTER", "NOT SHOWN")
	for i := range g.Nodes {
		n := &g.Nodes[i]
		where := n.Side
		if n.Job == g.Job {
			where = "this job"
		}
		cli.Row(w, n.Job, where, n.Name, graphState(n), afterWords(after[n.Job]), notShown(n))
	}
}

// graphState words the state of a node.
func graphState(n *wire.GraphNode) string {
	switch {
	case n.Held:
		return "held"
	case n.Gone:
		return n.State + " (no longer kept)"
	}
	return n.State
}

// notShown counts the neighbours of a node that the graph does not have.
func notShown(n *wire.GraphNode) string {
	var parts []string
	if n.MoreBefore > 0 {
		parts = append(parts, fmt.Sprintf("%d before", n.MoreBefore))
	}
	if n.MoreAfter > 0 {
		parts = append(parts, fmt.Sprintf("%d after", n.MoreAfter))
	}
	return strings.Join(parts, ", ")
}

// writeDOT writes a graph in the language of Graphviz.
func writeDOT(w io.Writer, g *wire.JobGraph) {
	fmt.Fprintf(w, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", dotText(g.Job))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		label := []string{n.Job, graphState(n)}
		if n.Name != "" {
			label = append([]string{n.Name}, label...)
		}
		if more := notShown(n); more != "" {
			label = append(label, "not shown: "+more)
		}
		style := ""
		if n.Job == g.Job {
			style = ", style=bold"
		}
		fmt.Fprintf(w, "  %s [label=%s%s];\n", dotText(n.Job), dotText(label...), style)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(w, "  %s -> %s [label=%s];\n", dotText(e.After), dotText(e.Job), dotText(e.When))
	}
	fmt.Fprintln(w, "}")
}

// dotText quotes lines of text, none of which is markup.
func dotText(lines ...string) string {
	for i := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(cli.Cell(lines[i]))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
