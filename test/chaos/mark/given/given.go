// Package given says which files the tasks of the chaos tests take and leave, for them and for their judge.
package given

import (
	"fmt"
	"strings"
)

// Where a task finds its file, and where it leaves one.
const (
	InputPath  = "in.txt"
	OutputPath = "out.txt"
)

// Input is what each task takes.
const Input = "what its owner has sent\n"

// lines is how often a long output says so: it is over what stands in the list of a task's files itself, so that it is
// fetched by itself.
const lines = 1200

// Output is what an attempt leaves: one line, or with an odd token many.
func Output(attempt, token string) string {
	line := fmt.Sprintf("attempt %s, token %s\n", attempt, token)
	if token == "" || (token[len(token)-1]-'0')%2 == 0 {
		return line
	}
	return strings.Repeat(line, lines)
}
