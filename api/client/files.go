package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/url"

	"github.com/cloudshare/cloudshare/api/wire"
)

// FileQuery selects what a job's tasks have left; zero fields select all.
type FileQuery struct {
	Task   *uint32 // index of the only task
	Limit  int     // of a page
	Cursor string
}

func (q FileQuery) query() url.Values {
	v := values("cursor", q.Cursor)
	if q.Task != nil {
		v.Set("task", fmt.Sprint(*q.Task))
	}
	if q.Limit > 0 {
		v.Set("limit", fmt.Sprint(q.Limit))
	}
	return v
}

// FilePage lists files that a job's tasks have left, by task and path, from a cursor on.
func (c *Client) FilePage(ctx context.Context, id string, q FileQuery) (wire.List[wire.ResultFile], error) {
	return plain[wire.List[wire.ResultFile]](ctx, c, jobPath(id)+"/files", q.query())
}

// Files goes through all of them, page by page. After an error there are no more.
func (c *Client) Files(ctx context.Context, id string, q FileQuery) iter.Seq2[wire.ResultFile, error] {
	if q.Limit == 0 {
		q.Limit = 1000
	}
	return func(yield func(wire.ResultFile, error) bool) {
		for {
			page, err := c.FilePage(ctx, id, q)
			if err != nil {
				yield(wire.ResultFile{}, err)
				return
			}
			for _, f := range page.Items {
				if !yield(f, nil) {
					return
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}

// OpenFile reads a file that a task has left; the caller closes it. A read error other than io.EOF means that it is not
// whole.
func (c *Client) OpenFile(ctx context.Context, id string, task uint32, path string) (io.ReadCloser, error) {
	return c.open(ctx, jobPath(id)+"/files/"+url.PathEscape(path), FileQuery{Task: &task}.query())
}

// Tar reads the files that a job's tasks have left, or one of them, as an archive; the caller closes it. A read error
// other than io.EOF means that it is not whole.
func (c *Client) Tar(ctx context.Context, id string, task *uint32) (io.ReadCloser, error) {
	return c.open(ctx, jobPath(id)+"/files.tar", FileQuery{Task: task}.query())
}
