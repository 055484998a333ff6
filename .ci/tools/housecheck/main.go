// Command housecheck looks for what linters do not: files that grew too long, lines that
// are too wide, skipped or sleeping tests, paths of one machine, packages without a doc
// comment, comments that do not begin with the name, words that the field does not use.
//
// Usage: housecheck [DIR]. It reads what git knows or would add.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	files, err := listed(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "housecheck:", err)
		os.Exit(2)
	}
	faults := check(root, files)
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// listed returns the files of the work tree that are tracked or not ignored.
func listed(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list files of %s with git: %w", root, err)
	}
	var files []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			files = append(files, name)
		}
	}
	return files, nil
}
