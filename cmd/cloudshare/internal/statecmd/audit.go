package statecmd

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/coord/compare"
)

// proven is what `audit check` prints for programs.
type proven struct {
	Proves     string            `json:"proves"`
	Federation string            `json:"federation"`
	Entry      uint64            `json:"entry"`
	Reporter   string            `json:"reporter"`
	Lied       []string          `json:"lied"`
	Camps      [][]string        `json:"camps"`
	Keys       map[string]string `json:"keys"`
}

// AuditCheck returns the command below `audit` that checks a file of evidence.
func AuditCheck(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check what other sites have signed of their states", Args: cobra.ExactArgs(1),
		Example: "  cloudshare audit check evidence/differs-site-2-81.json",
		Long: `Check a file of the folder evidence in a broker's data_dir, and say in one line what it proves. It needs no broker
and nothing but the file: whoever is shown it can check it. Two different states signed by one site are proof against
that site; of two sites, each with a state of its own, nothing proves which is right. Whose the keys are is by the
roster of the site that wrote the file: compare them (--output json) with what ` + "`cloudshare members`" + ` shows.

Exit codes: 0 the file is whole and proves what is said, 1 it is not.`,
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := readEvidence(args[0])
			if err != nil {
				return err
			}
			p, err := compare.CheckEvidence(file)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.Show(shownProof(p), func(w io.Writer) { _, _ = fmt.Fprintln(w, p) })
		},
	}
}

// readEvidence reads no more of a file than evidence may be large.
func readEvidence(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open evidence: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, compare.MaxEvidence+1))
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	return b, nil
}

func shownProof(p *compare.Proof) proven {
	out := proven{
		Proves: p.String(), Federation: p.Evidence.Federation, Entry: p.Entry, Reporter: p.Evidence.Reporter,
		Lied: append([]string{}, p.Lied...), Camps: p.Camps, Keys: map[string]string{},
	}
	for _, s := range p.Evidence.Statements {
		out.Keys[s.Site] = s.Key.String()
	}
	return out
}
