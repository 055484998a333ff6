package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	mdLink     = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	mdEmphasis = regexp.MustCompile(`\*{1,2}([^*\s][^*]*)\*{1,2}`)
)

// plainText makes a guide's Markdown easy to read on a terminal: headings stand
// out without marks, tables are aligned, code is indented. It knows what the
// guides use and leaves everything else as it is.
func plainText(md string) string {
	var out strings.Builder
	var table [][]string
	fenced := false
	for line := range strings.Lines(md) {
		line = strings.TrimSuffix(line, "\n")
		if !fenced && strings.HasPrefix(line, "|") {
			table = append(table, tableRow(line))
			continue
		}
		writeTable(&out, table)
		table = nil
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			out.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		case strings.HasPrefix(line, "<!--"): // not for readers
		case strings.HasPrefix(line, "#"):
			out.WriteString(heading(line))
		default:
			out.WriteString(inline(line) + "\n")
		}
	}
	writeTable(&out, table)
	return out.String()
}

// heading underlines the two upper levels.
func heading(line string) string {
	title := strings.TrimLeft(line, "#")
	level := len(line) - len(title)
	title = inline(strings.TrimSpace(title))
	switch level {
	case 1:
		return strings.ToUpper(title) + "\n" + strings.Repeat("=", utf8.RuneCountInString(title)) + "\n"
	case 2:
		return title + "\n" + strings.Repeat("-", utf8.RuneCountInString(title)) + "\n"
	}
	return title + "\n"
}

// inline takes the marks out of running text. What stands in backquotes is
// taken as it is.
func inline(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = mdEmphasis.ReplaceAllString(parts[i], "$1")
	}
	return mdLink.ReplaceAllStringFunc(strings.Join(parts, ""), linkText)
}

// linkText keeps where a link leads if that is of use on a terminal.
func linkText(link string) string {
	m := mdLink.FindStringSubmatch(link)
	file, _, _ := strings.Cut(m[2], "#")
	switch {
	case strings.HasPrefix(m[2], "http"):
		return m[1] + " <" + m[2] + ">"
	case strings.HasSuffix(file, ".md") && !strings.Contains(file, "/"):
		return m[1] + " (cloudshare guide " + strings.TrimSuffix(file, ".md") + ")"
	}
	return m[1]
}

// tableRow splits a row; a bar that belongs to a cell is written \|.
func tableRow(line string) []string {
	line = strings.ReplaceAll(strings.Trim(strings.TrimSpace(line), "|"), `\|`, "\x00")
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = inline(strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|"))
	}
	return cells
}

// writeTable aligns the columns; the row of dashes goes.
func writeTable(out *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if !isRule(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	for _, row := range rows {
		if isRule(row) || strings.Join(row, "") == "" {
			continue
		}
		line := ""
		for i, cell := range row {
			line += "  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// isRule reports whether a row separates a table's head.
func isRule(row []string) bool {
	return strings.Trim(strings.Join(row, ""), "-: ") == "" && row[0] != ""
}
