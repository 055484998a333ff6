package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// docsCommand writes what is generated from the program itself.
func docsCommand(a *cli.App) *cobra.Command {
	docs := &cobra.Command{
		Use: "docs", Short: "Write manual pages and the reference of keys", Args: cobra.NoArgs,
		Example: "  cloudshare docs man /usr/local/share/man/man1\n  cloudshare docs config",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	docs.AddCommand(
		&cobra.Command{
			Use: "man DIR", Short: "Write a manual page for each command into DIR", Args: cobra.ExactArgs(1),
			Example: "  cloudshare docs man /usr/local/share/man/man1",
			RunE: func(cmd *cobra.Command, args []string) error {
				return writeMan(a, cmd.Root(), args[0])
			},
		},
		&cobra.Command{
			Use: "config", Short: "Print the reference of a broker's configuration", Args: cobra.NoArgs,
			Example: "  cloudshare docs config > CONFIG.md",
			RunE: func(*cobra.Command, []string) error {
				_, err := a.Out.Write([]byte(config.Reference()))
				return err
			},
		},
	)
	return docs
}

func writeMan(a *cli.App, root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of manual pages: %w", err)
	}
	// Dated by SOURCE_DATE_EPOCH if that is set, so that a package can be rebuilt.
	header := &doc.GenManHeader{Section: "1", Source: "CloudShare", Manual: "CloudShare " + a.Version}
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "cloudshare*.1"))
	if err != nil {
		return err
	}
	a.Note("%d manual pages in %s", len(pages), dir)
	return nil
}
