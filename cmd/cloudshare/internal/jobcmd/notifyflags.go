package jobcmd

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// The flags that name who is told of a job's end.
const (
	flagNotify       = "notify"
	flagNotifyFailed = "notify-failed"
)

// notifyOf reads these flags; the broker judges the URLs.
func notifyOf(f *pflag.FlagSet) (list []any, err error) {
	for _, flag := range []struct{ name, on string }{
		{flagNotify, jobspec.HookEnded},
		{flagNotifyFailed, jobspec.HookFailed},
	} {
		urls, err := textsOf(f, flag.name)
		if err != nil {
			return nil, err
		}
		for _, url := range urls {
			list = append(list, map[string]any{"url": url, "on": []any{flag.on}})
		}
	}
	return list, nil
}

// noticeWords says what became of telling a URL of a job's end.
func noticeWords(n *wire.Notice) string {
	text := n.URL + ": " + n.State
	if n.Attempts > 1 || n.Attempts == 1 && n.State != "sent" {
		text += fmt.Sprintf(" after attempt %d", n.Attempts)
	}
	if n.Outcome != "" {
		text += ", " + n.Outcome
	}
	return text
}
