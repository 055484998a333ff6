package simcmd

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim"
	"github.com/cloudshare/cloudshare/node/sim/swf"
)

// maxLogNotes bounds how many of one log's malformed lines the terminal shows; the list
// has all of them.
const maxLogNotes = 20

// openLogs reads logs and tells what was odd about them: all malformed lines in
// the file list, which is made if there are any.
func openLogs(ctx context.Context, a *cli.App, paths []string, list string) (logs []*sim.Workload, err error) {
	m := &malformed{app: a, path: list}
	defer func() { err = cmp.Or(err, m.close()) }()
	for _, path := range paths {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		w, err := m.open(ctx, path)
		if err != nil {
			return nil, err
		}
		a.Note("%s: %d jobs, %d of them never ran, %d malformed lines, %d submitted out of order", w.Name, w.Lines, w.Dropped, w.Malformed, w.Unsorted)
		logs = append(logs, w)
	}
	collectSeldom(logs)
	return logs, nil
}

// collectSeldom has garbage take up to four times the memory that is in use, unless
// the logs are very long or whoever runs it has said otherwise: plays make much garbage and
// keep little.
func collectSeldom(logs []*sim.Workload) {
	jobs := 0
	for _, w := range logs {
		jobs += len(w.Jobs)
	}
	if _, told := os.LookupEnv("GOGC"); !told && jobs < manyJobs {
		debug.SetGCPercent(400)
	}
}

// manyJobs take 100 MiB in memory.
const manyJobs = 2_000_000

// malformed lists the lines of logs that are not as the format wants them. They
// pass through: however many there are, they take no memory.
type malformed struct {
	app  *cli.App
	path string
	file *os.File // nil = none yet
	out  *bufio.Writer
	told int // of this log
	err  error
}

// open reads one log.
func (m *malformed) open(ctx context.Context, path string) (*sim.Workload, error) {
	m.told = 0
	w, err := sim.OpenWorkload(ctx, path, m.add)
	if m.told > maxLogNotes {
		m.app.Note("%s: %d more malformed lines", path, m.told-maxLogNotes)
	}
	return w, err
}

func (m *malformed) add(p swf.Problem) {
	if m.told++; m.told <= maxLogNotes {
		m.app.Note("%s", p)
	}
	if m.file == nil && m.err == nil {
		m.create()
	}
	if m.file != nil {
		_, _ = fmt.Fprintln(m.out, p) // an error stays for Flush
	}
}

func (m *malformed) create() {
	if m.err = os.MkdirAll(filepath.Dir(m.path), 0o755); m.err == nil {
		m.file, m.err = os.Create(m.path)
	}
	m.out = bufio.NewWriter(m.file)
}

func (m *malformed) close() error {
	err := m.err
	if m.file != nil {
		err = cmp.Or(m.out.Flush(), m.file.Close())
	}
	if err != nil {
		return fmt.Errorf("list malformed lines in %s: %w", m.path, err)
	}
	if m.file != nil {
		m.app.Note("all malformed lines are listed in %s", m.path)
	}
	return nil
}
