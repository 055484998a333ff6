package statecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/compare"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
	"github.com/cloudshare/cloudshare/node/identity"
)

// AuditVerify returns the command below `audit` that goes through a kept history.
func AuditVerify(a *cli.App) *cobra.Command {
	var keys, statements []string
	cmd := &cobra.Command{
		Use: "verify FILE|DATA_DIR", Short: "Go through a history of the log again, and check all that is signed in it", Args: cobra.ExactArgs(1),
		Example: `  cloudshare audit verify fed.history
  cloudshare audit verify /var/lib/cloudshare -o json
  cloudshare audit verify fed.history --key lab-b=csk_… --statements lab-b.history`,
		Long: `Go through a file that ` + "`cloudshare audit export`" + ` wrote, or what a broker keeps in its data_dir, which may run. Each
bundle's signature is checked by the key that its site has in the state, each entry is executed again by the same state
machine that brokers run, so every decision and the ledger come out once more; and what members have signed of their
histories and states meanwhile is compared with that. The first difference is named: at which entry, and whose word
differs. A site that has signed something else than others, who have signed what stands here, is named, and does not end it.

It needs no broker and nothing but the file. It does not know whose the keys are: give those that each site has told you
by another way (--key, as its ` + "`cloudshare members`" + ` shows it). One site's file proves nothing against all who have signed it:
--statements takes what was signed from another site's file, or from a file of evidence, and compares it, too. What else
it does not prove stands at its end; see ` + "`cloudshare guide audit`" + `.

Behind a gap the ledger is the file's word until sites have signed it by keys known before, and so is the state at the
beginning until any have; the first line says so (NOT BACKED).

Exit codes: 0 proven: nothing differs, and sites have signed it; 6 something differs, or a site dissents; 7 not proven:
nothing differs, but nobody whose key is known has signed what is given; 1 it cannot be gone through, 2 usage.
With --output json the field verdict says the same: proven, differs, not-proven.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := verifyOptions(cmd.Context(), keys, statements)
			if err != nil {
				return err
			}
			src, err := history.OpenSource(args[0])
			if err != nil {
				return err
			}
			defer src.Close()
			bar := newBytesBar(cmd.Context(), a, "verifying", src.Size())
			o.Progress = bar.at
			r, err := replay.Verify(cmd.Context(), src, o)
			if err = errors.Join(err, bar.close()); err != nil {
				return err
			}
			r.Federation = uuid.UUID(config.ParseID(r.Federation)).String()
			if err = a.Show(r, func(w io.Writer) { showReport(w, r) }); err != nil {
				return err
			}
			return verdictExit(r)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&keys, "key", nil, "a site's key by another way, `SITE=KEY`; may be repeated")
	f.StringArrayVar(&statements, "statements", nil, "compare also what was signed in this `FILE` of another site; may be repeated")
	return cmd
}

// verdictExit returns the exit code of a report, which has been shown.
func verdictExit(r *replay.Report) error {
	switch r.Verdict {
	case replay.Proven:
		return nil
	case replay.NotProven:
		return cli.WithExit(cli.ExitNotProven, nil)
	}
	return cli.WithExit(cli.ExitDiffers, nil)
}

// verifyOptions reads what was given besides the file.
func verifyOptions(ctx context.Context, keys, statements []string) (o replay.Options, err error) {
	o.Keys = map[string]identity.Public{}
	for _, k := range keys {
		site, text, _ := strings.Cut(k, "=")
		if o.Keys[site], err = identity.ParsePublic(text); err != nil {
			return o, cli.Usage("--key %q: must be SITE=KEY, as `cloudshare members` shows them: %w", k, err)
		}
	}
	for _, path := range statements {
		list, err := statementsIn(ctx, path)
		if err != nil {
			return o, fmt.Errorf("--statements: %w", err)
		}
		o.Statements = append(o.Statements, list...)
	}
	return o, nil
}

// statementsIn returns what was signed in a history, or in a file of evidence.
func statementsIn(ctx context.Context, path string) ([]replay.Signed, error) {
	if isEvidence(path) {
		b, err := readEvidence(path)
		if err != nil {
			return nil, err
		}
		p, err := compare.CheckEvidence(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return replay.SignedIn(&p.Evidence), nil
	}
	src, err := history.OpenSource(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return replay.StatementsOf(ctx, src)
}

// isEvidence reports whether a file is in JSON.
func isEvidence(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false // who opens it next says why; to open a pipe would wait for who writes it
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := bufio.NewReader(f).Peek(1)
	return err == nil && b[0] == '{'
}
