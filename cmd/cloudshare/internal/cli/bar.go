package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar returns a bar of so many parts on the terminal, as all long commands show it; nil: there is no terminal, and the
// command says now and then in a line how far it is.
func (a *App) Bar(size int64, what string, more ...progressbar.Option) *progressbar.ProgressBar {
	if !IsTerminal(a.Err) {
		return nil
	}
	return progressbar.NewOptions64(size, append([]progressbar.Option{
		progressbar.OptionSetWriter(a.Err), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(200 * time.Millisecond), progressbar.OptionSetDescription(what),
	}, more...)...)
}
