// Package given says which files the tasks of the chaos tests take and leave, for them and for their judge.
package given

import "fmt"

// Where a task finds its file, and where it leaves one.
const (
	InputPath  = "in.txt"
	OutputPath = "out.txt"
)

// Input is what each task takes.
const Input = "what its owner has sent\n"

// Output is what an attempt leaves.
func Output(attempt, token string) string {
	return fmt.Sprintf("attempt %s, token %s\n", attempt, token)
}
