package keycmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/payloadkey"
)

func (k *keys) rotatePayloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate-payload", Short: "Replace the secret that a site's jobs are sealed with", Args: cobra.NoArgs,
		Example: "  cloudshare key rotate-payload --data-dir D",
		Long: `Replace the secret that a site's jobs are sealed with (payload.key): it writes payload.key.next, and the broker's next
start takes it. What is submitted then is sealed with it. The secrets of before stay in payload.key behind it as long as a
job needs them, one that has ended and is still shown, too; then the broker forgets them by itself, and says so in its
log. At most 4 are kept: until one of them is forgotten the next one waits.

It cannot call anything back: who has an old secret opens what was sealed with it, in every copy of the log, for good.
From then on copies of payload.key that were made before open no new job: make a new one after the start.

Exit codes: 0 written, 1 it cannot be written, 2 usage, 5 the last one has not been taken yet.`,
		RunE: func(*cobra.Command, []string) error { return k.rotatePayload() },
	}
}

func (k *keys) rotatePayload() error {
	if k.dir == "" {
		return cli.Usage("--data-dir is required: the folder of the broker's data")
	}
	list, err := payloadkey.Read(k.path(config.SecretFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s has no %s: the broker makes it at its first start", k.dir, config.SecretFile)
	case err != nil:
		return err
	}
	next := k.path(config.NextSecret)
	if _, err = os.Lstat(next); err == nil {
		return cli.WithExit(cli.ExitRefused, fmt.Errorf("%s is there already: start the broker again, which takes it", next))
	}
	if err = payloadkey.Next(next); err != nil {
		return err
	}
	if len(list) >= payloadkey.MaxKept {
		k.Note("Jobs need all %d secrets that there are: it is taken by the first start at which one of them is not needed any more.",
			len(list))
	}
	k.Note("Restart the broker now: it takes %s, and seals what comes then with it. Then make a new copy of %s.",
		config.NextSecret, config.SecretFile)
	return nil
}
