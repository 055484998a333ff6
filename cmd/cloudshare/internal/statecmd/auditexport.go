package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/statefile"
	"github.com/cloudshare/cloudshare/node/history"
)

// exportedHistory is what `audit export` prints for programs.
type exportedHistory struct {
	File       string `json:"file"`
	Begin      uint64 `json:"begin"` // entry of the state with which it begins
	End        uint64 `json:"end"`
	Entries    int    `json:"entries"`
	Statements int    `json:"statements"`
	Bytes      int64  `json:"bytes"`
	// Notes say what of the folder is not in the file.
	Notes []string `json:"notes"`
}

// AuditExport returns the command below `audit` that writes a history for a third party.
func AuditExport(a *cli.App) *cobra.Command {
	var path, dir string
	var x history.Export
	cmd := &cobra.Command{
		Use: "export FILE", Short: "Write the kept history of the log into one file, for a third party", Args: cobra.ExactArgs(1),
		Example: `  cloudshare audit export fed.history --data-dir /var/lib/cloudshare
  cloudshare audit export may.history --config /etc/cloudshare.yaml --from 120000 --to 180000`,
		Long: `Write what a broker has kept of the log into one file that is not there yet: a state, the entries behind it as they
were ordered, and what members have signed of both. Whoever has it can go through it with ` + "`cloudshare audit verify`" + `,
and needs nothing else. The broker may run.

The file begins with the newest state before --from, so it may have entries before that. It holds what the log holds:
names of sites and machines, and of each job its image, labels, needs and times; names, commands and environments are
sealed in it. Give it only to those who may read that. How much a broker keeps says its key history.max_bytes.

Exit codes: 0 written, 1 it cannot be read or written, 2 usage, 5 there is a file of that name already.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := historyFolder(path, dir, cmd)
			if err != nil {
				return err
			}
			if x.To != 0 && x.From > x.To {
				return cli.Usage("--from %d is behind --to %d", x.From, x.To)
			}
			out, err := exportHistory(cmd.Context(), a, &x, from, args[0])
			if err != nil {
				return moveRefusal(err)
			}
			return a.Show(out, func(w io.Writer) {
				cli.Row(w, "file", fmt.Sprintf("%s, %d bytes", out.File, out.Bytes))
				cli.Row(w, "begins", fmt.Sprintf("with the state behind entry %d", out.Begin))
				cli.Row(w, "entries", fmt.Sprintf("%d to %d", out.Begin+1, out.End))
				cli.Row(w, "statements", out.Statements)
				for _, n := range out.Notes {
					cli.Row(w, "note", n)
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "config", "", "take data_dir from a broker's YAML `FILE`")
	f.StringVar(&dir, "data-dir", "", "the broker's data directory")
	f.Uint64Var(&x.From, "from", 0, "`ENTRY` that is to be in it; 0 = the first one that is kept")
	f.Uint64Var(&x.To, "to", 0, "last `ENTRY`; 0 = the last one that is kept")
	return cmd
}

// historyFolder returns the data directory by flag or configuration.
func historyFolder(path, dir string, cmd *cobra.Command) (string, error) {
	if (path == "") == (dir == "") {
		return "", cli.Usage("name the broker's data: either --data-dir or --config")
	}
	if path == "" {
		return dir, nil
	}
	cfg, err := config.Load(path, cmd.Flags(), os.Environ)
	return cfg.DataDir, err
}

// exportHistory writes the file: all of it or none.
func exportHistory(ctx context.Context, a *cli.App, x *history.Export, from, to string) (
	out exportedHistory, err error,
) {
	if err = statefile.Absent(to); err != nil {
		return out, err
	}
	src, err := history.OpenSource(from)
	if err != nil {
		return out, err
	}
	defer src.Close()
	part := to + ".new"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return out, err
	}
	bar := newBytesBar(ctx, a, "exporting", src.Size())
	x.Progress = bar.at
	x.Header = history.Header{Site: keptBy(src), Version: a.Version, At: time.Now().UTC().Format(time.RFC3339)}
	err = errors.Join(x.Write(src, bar.until(f)), bar.close(), f.Sync())
	size, cause := f.Seek(0, io.SeekEnd)
	if err = errors.Join(err, cause, f.Close()); err == nil {
		err = statefile.Rename(part, to)
	}
	if err != nil {
		return out, errors.Join(fmt.Errorf("write %s: %w", to, err), os.Remove(part))
	}
	notes := slices.Concat([]string{}, src.Notes, x.Notes)
	return exportedHistory{filepath.Clean(to), x.First, x.Last, x.Entries, x.Statements, size, notes}, nil
}

// keptBy returns the site whose broker has kept a source, by its own word.
func keptBy(src *history.Source) string {
	r, err := src.Segments[0].Records()
	if err != nil {
		return "" // who goes through it finds that
	}
	return r.Header.Site
}
