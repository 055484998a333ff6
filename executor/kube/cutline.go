package kube

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
)

// cutLine returns the last line of an output of which only so many bytes could be had. why is one line, see inLine.
func cutLine(size int64, why string) string {
	return fmt.Sprintf("\n[cloudshare: output cut at %d bytes: %s]\n", size, why)
}

var cutEnd = regexp.MustCompile(`\n\[cloudshare: output cut at ([0-9]+) bytes: [^\n]*\]\n$`)

// maxCutLine bounds one, in bytes.
const maxCutLine = 1 << 10

// removeCutLine takes the line off a file that ends with one. It says where it stands, so what a task writes is hardly
// ever taken for one.
func removeCutLine(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(removeCutLineOf(f), f.Close())
}

func removeCutLineOf(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	from := max(0, st.Size()-maxCutLine)
	end, err := io.ReadAll(io.NewSectionReader(f, from, maxCutLine))
	if err != nil {
		return err
	}
	at := cutEnd.FindSubmatchIndex(end)
	if at == nil {
		return nil
	}
	size := from + int64(at[0])
	if said, err := strconv.ParseInt(string(end[at[2]:at[3]]), 10, 64); err != nil || said != size {
		return nil //nolint:nilerr // it is the task's own
	}
	return f.Truncate(size)
}
