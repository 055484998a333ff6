package main

import "slices"

// farGrid shows the figures of far sites with a column for each layout, each beside its limit.
type farGrid struct {
	rows, columns []string
	cells         map[[2]string]figure
}

func (g *farGrid) set(row, column string, f figure) {
	if g.cells == nil {
		g.cells = map[[2]string]figure{}
	}
	if !slices.Contains(g.rows, row) {
		g.rows = append(g.rows, row)
	}
	if !slices.Contains(g.columns, column) {
		g.columns = append(g.columns, column)
	}
	g.cells[[2]string{row, column}] = f
}

// sheet returns the grid: "measured (limit)", and whether an aim was met.
func (g *farGrid) sheet() sheet {
	out := sheet{
		title: "Sites far apart: measured (limit: round trips measured by ping in the same run); round trips between all sites, or a mix",
		head:  append([]string{""}, g.columns...),
	}
	for _, row := range g.rows {
		line := []string{row}
		for _, column := range g.columns {
			line = append(line, g.cell(row, column))
		}
		out.rows = append(out.rows, line)
	}
	return out
}

func (g *farGrid) cell(row, column string) string {
	f, ok := g.cells[[2]string{row, column}]
	if !ok {
		return ""
	}
	text := number(f.measured)
	if f.limit != 0 {
		text += " (" + number(f.limit) + ")"
	}
	if v := f.verdict(); v != "" {
		text += " " + v
	}
	return text
}
