package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/goldenfile"
)

const figuresBegin, figuresEnd = "<!-- figures: made from fsm/testdata/paper/figures by `make docs` -->\n", "<!-- end of figures -->"

var (
	played = regexp.MustCompile(`(?m)^play policy=(\w+) mode=partial\n----\nMA: (.*)\nMB: (.*)$`)
	runOf  = regexp.MustCompile(`(\w)(\d)\[(\d+),(\d+)\)`)
)

// drawMachine draws "A1[0,2) …" as a bar, four columns to a unit of time.
func drawMachine(name, runs string) string {
	const unit = 4
	line := []rune(name + strings.Repeat(" ", 3-len(name)) + strings.Repeat("·", 11*unit))
	for _, m := range runOf.FindAllStringSubmatch(runs, -1) {
		from, _ := strconv.Atoi(m[3])
		to, _ := strconv.Atoi(m[4])
		bar := []rune("[" + m[1] + m[2] + strings.Repeat("=", (to-from)*unit-4) + "]")
		copy(line[3+from*unit:], bar)
	}
	return strings.TrimRight(string(line), " ")
}

// drawFigures draws Figures 1 and 2 of the paper from the state machine's golden.
func drawFigures(goldenText string) string {
	schedules := map[string][2]string{}
	for _, m := range played.FindAllStringSubmatch(goldenText, -1) {
		schedules[m[1]] = [2]string{m[2], m[3]}
	}
	var b strings.Builder
	b.WriteString("```text\n")
	for _, f := range []struct{ policy, title string }{
		{"SIMPL_DIRECT", "DirectContr (SIMPL_DIRECT; ORIG and REL alike)"}, {"FAIRSHARE", "FairShare"},
	} {
		s := schedules[f.policy]
		fmt.Fprintf(&b, "%s\n%s\n%s\n   ", f.title, drawMachine("MA", s[0]), drawMachine("MB", s[1]))
		for t := range 11 {
			fmt.Fprintf(&b, "%-4d", t)
		}
		b.WriteString("11\n\n")
	}
	return strings.TrimSuffix(b.String(), "\n") + "```\n"
}

// TestConceptsDrawThePaper: the drawing is what the state machine played.
func TestConceptsDrawThePaper(t *testing.T) {
	played, err := os.ReadFile("../../fsm/testdata/paper/figures")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := guides.ReadFile("guide/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), figuresBegin)
	_, after, ok2 := strings.Cut(rest, figuresEnd)
	if !ok || !ok2 {
		t.Fatal("guide/concepts.md has no place for the figures")
	}
	goldenfile.Match(t, "../guide/concepts.md", before+figuresBegin+drawFigures(string(played))+figuresEnd+after)
}
