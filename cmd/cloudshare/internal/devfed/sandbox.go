package devfed

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// sandboxKeys returns the lines of config.yaml that say how tasks are contained; what is
// not given is left to the broker.
func sandboxKeys(tasks string, share []string) (string, error) {
	var lines strings.Builder
	if tasks != "" {
		fmt.Fprintf(&lines, "  tasks: %q\n", tasks)
	}
	if len(share) > 0 {
		whole := make([]string, len(share))
		for i, dir := range share {
			var err error
			if whole[i], err = filepath.Abs(dir); err != nil {
				return "", cli.Usage("--share %s: %v", dir, err)
			}
		}
		list, err := json.Marshal(whole) // a list of YAML, too
		if err != nil {
			return "", fmt.Errorf("write list of shared folders: %w", err)
		}
		fmt.Fprintf(&lines, "  share: %s\n", list)
	}
	if lines.Len() == 0 {
		return "", nil
	}
	return "sandbox:\n" + lines.String(), nil
}
