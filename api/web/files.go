package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// shownFiles is how many files a job's page names.
const shownFiles = 100

// ResultFile is a file that a task has left.
type ResultFile struct {
	Task uint32 // its index
	Path string
	Size int64 // bytes
}

// Files shows the files of this site's jobs.
type Files interface {
	// ResultFiles returns the first files that a job's tasks have left, so many at most, and whether there are more.
	ResultFiles(ctx context.Context, job *node.Job, most int) (list []ResultFile, more bool, err error)
	// FilesUse returns what the spaces of the store have; nil: this broker keeps no files.
	FilesUse() []node.SpaceUse
}

// filesView is what the tasks of a job have left.
type filesView struct {
	Wanted  bool
	Several bool // tasks
	Rows    []fileRow
	More    bool
	Archive string // its URL
	All     string // URL of the whole list
	Unsaid  string // why there are none to show
}

type fileRow struct {
	ResultFile
	URL string
}

// files returns what a job's tasks have left. A part of the page that is asked for again does not show them: to read
// them takes reading manifests.
func (p *Pages) files(r *http.Request, job *node.Job) filesView {
	v := filesView{Wanted: job.Spec.Outputs.Wanted() && !job.Outline, Several: job.Spec.Count > 1}
	if !v.Wanted || r.Header.Get("HX-Request") == "true" {
		return v
	}
	base := "/v1/jobs/" + job.ID.String() + "/files"
	v.Archive, v.All = base+".tar", base
	list, more, err := p.cfg.Source.ResultFiles(r.Context(), job, shownFiles)
	if err != nil {
		v.Unsaid = p.cfg.Problem(err).Title
		return v
	}
	v.More = more
	for _, f := range list {
		link := base + "/" + url.PathEscape(f.Path) + "?task=" + strconv.FormatUint(uint64(f.Task), 10)
		v.Rows = append(v.Rows, fileRow{f, link})
	}
	return v
}

// inputRow is an input of a job.
type inputRow struct{ Path, From string }

func inputsOf(spec *jobspec.Spec) (out []inputRow) {
	for i := range spec.Inputs {
		out = append(out, inputRow{spec.Inputs[i].Path, inputWords(&spec.Inputs[i])})
	}
	return out
}

// inputWords says what an input is made of.
func inputWords(in *jobspec.Input) string {
	switch in.From {
	case jobspec.FromContent:
		return "stands in the job, " + byteWords(int64(len(in.Content)))
	case jobspec.FromURL:
		return "from " + in.URL
	case jobspec.FromDirectory:
		return "a directory"
	case jobspec.FromEach:
		return "one file for each task"
	case jobspec.FromFile:
	}
	if in.Blob.Size < 0 {
		return "a file"
	}
	return "a file of " + byteWords(in.Blob.Size)
}

// outputWords says what tasks are to leave, "" = nothing.
func outputWords(o *jobspec.Outputs) string {
	words := strings.Join(o.Paths, ", ")
	if len(o.Optional) > 0 {
		words = strings.TrimPrefix(words+", ", ", ") + strings.Join(o.Optional, ", ") + " (may be missing)"
	}
	return words
}

// byteWords words a number of bytes.
func byteWords(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if n < 1<<20 {
			return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + " " + unit
		}
		n >>= 10
	}
	return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + " TiB"
}
