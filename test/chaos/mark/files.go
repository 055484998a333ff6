package main

import (
	"fmt"
	"os"

	"github.com/cloudshare/cloudshare/test/chaos/mark/given"
)

// takeFiles checks that the task's input is the one that its owner sent, and leaves an output that names the attempt.
func takeFiles() error {
	in, err := os.ReadFile(given.InputPath)
	if err != nil {
		return fmt.Errorf("read what was sent: %w", err)
	}
	if string(in) != given.Input {
		return fmt.Errorf("%s has %d bytes that nobody sent", given.InputPath, len(in))
	}
	out := given.Output(os.Getenv("CLOUDSHARE_ATTEMPT"), os.Getenv("CLOUDSHARE_TOKEN"))
	if err = os.WriteFile(given.OutputPath, []byte(out), 0o600); err != nil {
		return fmt.Errorf("leave what comes back: %w", err)
	}
	return nil
}
