package command

import "fmt"

// Runs says which tasks a machine runs. A task names a container image, or it
// is a bare command: a machine of the wrong kind never gets it.
type Runs uint8

// What machines run; RunsCommands is the default.
const (
	RunsCommands Runs = iota // bare commands only
	RunsImages               // container images only, as a cluster
	RunsBoth
)

// Takes reports whether a task may run here, image saying that it names one.
func (r Runs) Takes(image bool) bool { return r == RunsBoth || (r == RunsImages) == image }

// String names what is run, for people.
func (r Runs) String() string {
	switch r {
	case RunsCommands:
		return "commands"
	case RunsImages:
		return "images"
	case RunsBoth:
		return "commands and images"
	}
	return fmt.Sprintf("Runs(%d)", uint8(r))
}
