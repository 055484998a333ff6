package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/node/files"
)

// File is one that a task of a job has left.
type File struct {
	Task       uint32     `json:"task"`
	Attempt    uint32     `json:"attempt"`
	Path       string     `json:"path"`
	Size       int64      `json:"size"`
	SHA256     files.Hash `json:"sha256"`
	Executable bool       `json:"executable"`
}

const (
	// maxFiles bounds what is kept of a list: tasks of more files are fetched one by one.
	maxFiles = 1_000_000
	// maxPage bounds a page of it, in bytes.
	maxPage = 64 << 20
	// page is how many files are asked for at once.
	page = 1000
)

// List returns the files of a job, or of one of its tasks. Paths that no file can have are refused.
func (f *Fetcher) List(ctx context.Context, job string, task *uint32) (list []File, err error) {
	query := url.Values{"limit": {strconv.Itoa(page)}}
	if task != nil {
		query.Set("task", strconv.FormatUint(uint64(*task), 10))
	}
	for {
		items, next, err := f.page(ctx, job, query)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if err := items[i].check(); err != nil {
				return nil, fmt.Errorf("list files of job %s: %w", job, err)
			}
		}
		if list = append(list, items...); len(list) > maxFiles {
			return nil, fmt.Errorf("job %s has left more than %d files: fetch its tasks one by one, with --task", job, maxFiles)
		}
		if next == "" {
			return list, nil
		}
		if next == query.Get("cursor") {
			return nil, fmt.Errorf("%w: the list of files of job %s has no end", client.ErrBadAnswer, job)
		}
		query.Set("cursor", next)
	}
}

func (f *File) check() error {
	if err := files.CheckPath(f.Path); err != nil {
		return err
	}
	return files.Blob{Hash: f.SHA256, Size: f.Size}.Check()
}

func (f *Fetcher) page(ctx context.Context, job string, query url.Values) (items []File, next string, err error) {
	var answer struct {
		Items []File `json:"items"`
		Next  string `json:"next"`
	}
	err = f.again(ctx, func() error {
		answer.Items, answer.Next = nil, ""
		res, asked := f.broker.Ask(ctx, http.MethodGet, filesPath(job), query, nil, nil)
		if asked != nil {
			return asked
		}
		defer res.Body.Close()
		if bad := json.NewDecoder(io.LimitReader(res.Body, maxPage)).Decode(&answer); bad != nil {
			return fmt.Errorf("%w: list files of job %s: %w", client.ErrBadAnswer, job, bad)
		}
		return nil
	})
	return answer.Items, answer.Next, err
}

func filesPath(job string) string { return "/v1/jobs/" + url.PathEscape(job) + "/files" }
