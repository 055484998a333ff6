package results

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// Page sizes of lists.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// lost reports an error of a blob that is not there any more, or not as it was.
func lost(err error) bool {
	return errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrDamaged)
}

// entries calls f for every file of a task, one after the other: a manifest is never held whole. It is read to its end,
// where its hash is checked: until then nothing that f was told is to be used.
func (s *Results) entries(id command.JobID, t node.TaskResult, f func(n int, e files.Entry)) error {
	blob, err := s.Broker.OpenResult(id, t.Manifest.Hash)
	if err != nil {
		return gone(id, err)
	}
	defer blob.Close()
	n := 0
	for e, err := range files.NewManifestReader(blob).All() {
		if err != nil {
			return gone(id, fmt.Errorf("%w: read its manifest: %w", store.ErrDamaged, err))
		}
		f(n, e)
		n++
	}
	return nil
}

// cursor is where a list goes on: at an entry of a task's manifest.
type cursor struct {
	task  uint32 // position
	entry int
}

func (c cursor) String() string {
	return strconv.FormatUint(uint64(c.task), 10) + "-" + strconv.Itoa(c.entry)
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	task, entry, _ := strings.Cut(text, "-")
	at, err := strconv.ParseUint(task, 10, 32)
	if err == nil {
		c.task = uint32(at)
		c.entry, err = strconv.Atoi(entry)
	}
	if err != nil || c.entry < 0 || c.entry > files.MaxEntries || c.String() != text {
		return cursor{}, fmt.Errorf("%w: %.40q", node.ErrBadCursor, text)
	}
	return c, nil
}

// list answers with a page of files.
func (s *Results) list(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	limit, err := rest.QueryUint(r, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	a, err := s.ask(r, param)
	if err != nil {
		return err
	}
	from, err := parseCursor(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	leave, err := s.Taking.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	page, err := s.page(r.Context(), &a, from, int(limit))
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, http.StatusOK, page)
}

// page returns so many files at most.
func (s *Results) page(ctx context.Context, a *asked, from cursor, limit int) (wire.List[wire.ResultFile], error) {
	out := wire.List[wire.ResultFile]{Items: []wire.ResultFile{}}
	err := s.each(ctx, a, from.task, func(t node.TaskResult) (bool, error) {
		if len(out.Items) == limit { // there is one more task, which may have files
			out.Next = cursor{task: t.Task}.String()
			return false, nil
		}
		err := s.entries(a.job.ID, t, func(n int, e files.Entry) {
			switch {
			case t.Task == from.task && n < from.entry, out.Next != "":
			case len(out.Items) == limit:
				out.Next = cursor{t.Task, n}.String()
			default:
				out.Items = append(out.Items, fileOf(&a.job, t, e))
			}
		})
		return out.Next == "", err
	})
	return out, err
}

func fileOf(job *node.Job, t node.TaskResult, e files.Entry) wire.ResultFile {
	return wire.ResultFile{
		Task: indexOf(job, t.Task), Attempt: t.Attempt, Path: e.Path, Size: e.Size, SHA256: e.Hash.String(),
		Executable: e.Executable,
	}
}

// First returns the first files of a job, and whether there are more, for its page.
func (s *Results) First(ctx context.Context, job *node.Job, most int) (list []wire.ResultFile, more bool, err error) {
	page, err := s.page(ctx, &asked{job: *job}, cursor{}, most)
	return page.Items, page.Next != "", err
}
