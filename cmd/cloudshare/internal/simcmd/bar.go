package simcmd

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/sim/study"
)

// studyBar shows how far a study is: a bar on a terminal, elsewhere a line at each
// tenth.
type studyBar struct {
	app   *cli.App
	bar   *progressbar.ProgressBar // nil = no terminal
	began time.Time
	size  int
	done  int // instances that are there
	fresh int // of these, played now
}

func newStudyBar(a *cli.App, report *study.Report, began time.Time) *studyBar {
	size := report.Study.Size()
	for _, v := range report.Variants {
		size += v.Study.Size()
	}
	return newInstancesBar(a, size, began)
}

// newInstancesBar returns a bar of so many instances.
func newInstancesBar(a *cli.App, size int, began time.Time) *studyBar {
	return &studyBar{
		app: a, began: began, size: size,
		// its time left would count what an earlier run played
		bar: a.Bar(int64(size), "instances", progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false)),
	}
}

// found counts instances that an earlier run has left.
func (b *studyBar) found(n int) {
	b.done += n
	if b.bar != nil {
		_ = b.bar.Add(n) // only a terminal that went away fails
	}
}

// played counts one that was played just now.
func (b *studyBar) played(now time.Time) {
	b.done++
	b.fresh++
	left := now.Sub(b.began) / time.Duration(b.fresh) * time.Duration(b.size-b.done)
	switch {
	case b.bar != nil:
		b.bar.Describe(fmt.Sprintf("instances, about %s left", left.Round(time.Second)))
		_ = b.bar.Add(1) // see found
	case b.done*10/b.size > (b.done-1)*10/b.size && b.done < b.size:
		b.app.Note("%d of %d instances, about %s left", b.done, b.size, left.Round(time.Second))
	}
}

func (b *studyBar) close() {
	if b.bar != nil {
		_ = b.bar.Clear() // see found
	}
}
