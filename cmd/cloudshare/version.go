package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  cloudshare version -o json",
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return a.Show(v, func(w io.Writer) { fmt.Fprintf(w, "cloudshare %s (%s, %s)\n", a.Version, v["go"], v["platform"]) })
		},
	}
}
