package kube

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// execFailed is what runc and crun say of a command that cannot be run.
var execFailed = regexp.MustCompile(`(?:exec: |executable file |unable to start container process: |executable path )(.*)`)

// isNoStart: the command is wrong, not the node.
func isNoStart(e *corev1.ContainerStateTerminated) bool {
	if e.Reason != startError && e.Reason != "ContainerCannotRun" {
		return false
	}
	for _, words := range []string{"executable file not found", "no such file or directory", "permission denied", "exec format error", "is a directory"} {
		if strings.Contains(e.Message, words) && execFailed.MatchString(e.Message) {
			return true
		}
	}
	return false
}

func noStartCode(message string) int {
	if strings.Contains(message, "not found") || strings.Contains(message, "no such file") {
		return 127
	}
	return 126
}

// noStart says why a command was not run. Runtimes name it, and all members of the federation hear this.
func noStart(message string) string {
	if noStartCode(message) == 127 {
		return "its command is not there"
	}
	return "its command cannot be run"
}

// quoted is what a runtime or an API server quotes, such as an argument or a variable of a task.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*(?:\"|$)|`[^`]*(?:`|$)")

// withoutNames returns Kubernetes' words in one line, without what a job runs, which all members would hear: it stands
// quoted, or behind where a runtime says that it runs it.
func withoutNames(message string) string {
	if at := execFailed.FindStringIndex(message); at != nil {
		message = message[:at[0]] + "its command cannot be run"
	}
	return inLine(quoted.ReplaceAllString(message, `"…"`))
}
