//go:build tes

package tes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed/typed"
)

// snakemake is how its user types it; its process is the container's first, so that it gets signals.
const snakemake = "TES_TOKEN=$(cat ~/token) exec snakemake --tes $CLOUDSHARE_ADDR --jobs 6"

// guide is the page for users of workflows.
const guide = "../../cmd/cloudshare/guide/workflows.md"

// TestSnakemake has a user type what the guide shows, then run a workflow while a site is killed, and then interrupt
// one; in one federation, since its start takes as long as each of them.
func TestSnakemake(t *testing.T) {
	f := start(t)
	f.typeGuide()
	f.loseSite()
	f.interrupt()
}

// typeGuide types what the guide shows, and compares what comes.
func (f *federation) typeGuide() {
	text, err := os.ReadFile(guide)
	f.must(err)
	blocks := typed.Blocks(string(text), "console tes")
	if len(blocks) < 2 {
		f.Fatalf("%s has %d blocks to type", guide, len(blocks))
	}
	for _, b := range blocks {
		if b.File != "" {
			f.write(filepath.Join("guide", b.File), b.Body)
			continue
		}
		for _, line := range b.Commands() {
			c := f.begin("guide", strings.ReplaceAll(line.Line, "http://127.0.0.1:7700", f.sites[0].URL.String()))
			code := c.end()
			if got := c.said(); code != 0 || !line.Fits(got) {
				f.Errorf("the block at line %d: $ %s\nexit code %d\n%s\nthe guide has\n%s", b.Line, line.Line, code, got, line.Want)
			}
		}
	}
}

// loseSite runs a workflow. While the third site runs a task of it, that site's broker is killed; its task ends by
// the lease, and runs elsewhere. Snakemake hears nothing of that: it repeats the task of the failing rule alone.
func (f *federation) loseSite() {
	want := 0
	for n := 1; n <= 6; n++ {
		f.write(fmt.Sprintf("squares/numbers/%d.txt", n), strconv.Itoa(n)+"\n")
		want += n * n
	}
	f.copies("squares/Snakefile", "Snakefile")
	c := f.begin("squares", snakemake)
	victim := f.sites[2]
	lost := c.runsAt(victim.Name)
	victim.End(syscall.SIGKILL)
	if code := c.end(); code != 0 {
		f.Fatalf("Snakemake ended with code %d:\n%s", code, c.said())
	}
	if got := f.read("squares/sum.txt"); got != fmt.Sprintln(want) {
		f.Errorf("the sum is %q, want %d", got, want)
	}
	if got := f.read("squares/sum.log"); got != "turn 2\n1+4+9+16+25+36\n" {
		f.Errorf("the log of the last rule is %q", got)
	}
	errored := regexp.MustCompile(`Task errored: (\S+)`).FindAllStringSubmatch(c.said(), -1)
	if len(errored) != 1 || !strings.Contains(c.said(), "Trying to restart job") {
		f.Errorf("Snakemake saw %v fail, want the first turn of the last rule alone:\n%s", errored, c.said())
	}
	f.moved(lost)
	f.listed(c.submitted(), errored)
}

// copies gives the user a file of testdata.
func (f *federation) copies(to, name string) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	f.must(err)
	f.write(to, string(text))
}

// runsAt waits until a site runs a task of a workflow, and returns its job.
func (c *command) runsAt(site string) (id string) {
	c.Helper()
	a := c.sites[0]
	c.await("a task of the workflow runs at "+site, func() error {
		jobs, err := a.AllJobs(a.Context(), "state=running")
		for _, j := range jobs {
			if t := a.Only(j.ID); t.State == "running" && t.Site == site {
				id = j.ID
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("%d run elsewhere", len(jobs)))
	})
	return id
}

// moved checks that the job whose site was killed ran again, at another one.
func (f *federation) moved(id string) {
	f.Helper()
	if t := f.sites[0].Only(id); t.State != "succeeded" || t.Attempt < 2 || t.Site == f.sites[2].Name {
		f.Errorf("%s is %s, by attempt %d at %s, want a second one elsewhere", id, t.State, t.Attempt, t.Site)
	}
}

// submitted returns the ids of the tasks that a Snakemake has made.
func (c *command) submitted() (ids []string) {
	for _, m := range regexp.MustCompile(`Task submitted: (\S+)`).FindAllStringSubmatch(c.said(), -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// listed checks what the service lists of a workflow's tasks.
func (f *federation) listed(ids []string, errored [][]string) {
	f.Helper()
	f.copies("squares/list.py", "list.py")
	c := f.begin("squares", "python3 list.py")
	if code := c.end(); code != 0 {
		f.Fatalf("the list ended with code %d:\n%s", code, c.said())
	}
	lines := strings.Split(c.said(), "\n")
	for _, id := range ids {
		want := "COMPLETE " + id
		if len(errored) > 0 && errored[0][1] == id {
			want = "EXECUTOR_ERROR " + id
		}
		if !slices.Contains(lines, want) {
			f.Errorf("the service does not list %q:\n%s", want, c.said())
		}
	}
	if len(ids) != 8 {
		f.Errorf("Snakemake made the tasks %v, want six squares and two sums", ids)
	}
}

// interrupt ends Snakemake by Ctrl-C while its task runs: that is cancelled.
func (f *federation) interrupt() {
	f.write("long/Snakefile", "rule long:\n    output: \"never.txt\"\n    shell: \"sleep 1000; touch {output}\"\n")
	c := f.begin("long", snakemake)
	a := f.sites[0]
	var ids []string
	c.await("Snakemake makes its task", func() error {
		if ids = c.submitted(); len(ids) == 0 {
			return errors.New(c.said())
		}
		return nil
	})
	a.Reaches(ids[0], "running")
	f.must(c.call(c.id+"/kill?signal=INT", nil, nil))
	if code := c.end(); code == 0 {
		f.Errorf("Snakemake was interrupted and ended with code 0:\n%s", c.said())
	}
	a.Reaches(ids[0], "cancelled")
}
