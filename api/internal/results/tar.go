package results

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/served"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
)

// tar answers with an archive. The status is out before the first byte, so one that fails in the middle ends with a cut
// connection.
func (s *Results) tar(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	a, err := s.ask(r, param)
	if err != nil {
		return err
	}
	if _, err = s.first(r.Context(), &a); err != nil {
		return err
	}
	leave, err := s.Taking.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	name := a.job.ID.String()
	if a.one {
		name += "-" + strconv.FormatUint(uint64(indexOf(&a.job, a.only)), 10)
	}
	served.Attachment(w.Header(), name+".tar", "application/x-tar")
	w.WriteHeader(http.StatusOK)
	out := tar.NewWriter(w)
	err = s.each(r.Context(), &a, 0, func(t node.TaskResult) (bool, error) {
		return true, s.addTask(r.Context(), out, &a, t)
	})
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		if r.Context().Err() == nil {
			s.Log.Warn().Err(err).Str("job", a.job.ID.String()).Msg("archive of results broke off")
		}
		panic(http.ErrAbortHandler) // a cut connection: the client must not take it for the whole
	}
	return nil
}

// first looks for a task with results: one that is asked for and has none is told so, not an empty archive.
func (s *Results) first(ctx context.Context, a *asked) (found bool, err error) {
	err = s.each(ctx, a, 0, func(t node.TaskResult) (bool, error) {
		found = true
		return false, nil
	})
	if err == nil && a.one && !found {
		err = fmt.Errorf("files of task %d of job %s: %w: it has left none that are here yet", indexOf(&a.job, a.only),
			a.job.ID, node.ErrNotFound)
	}
	return found, err
}

// addTask adds the files of one task.
func (s *Results) addTask(ctx context.Context, out *tar.Writer, a *asked, t node.TaskResult) error {
	prefix := ""
	if !a.one && a.job.Spec.Count > 1 {
		prefix = strconv.FormatUint(uint64(indexOf(&a.job, t.Task)), 10) + "/"
	}
	var failed error
	err := s.entries(a.job.ID, t, func(_ int, e files.Entry) {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed == nil {
			failed = s.addFile(out, a.job.ID, prefix, e)
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// addFile adds one file, with nothing in its head that is not in the manifest: so the same files are the same archive.
func (s *Results) addFile(out *tar.Writer, id command.JobID, prefix string, e files.Entry) error {
	mode := int64(0o644)
	if e.Executable {
		mode = 0o755
	}
	err := out.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: prefix + e.Path, Size: e.Size, Mode: mode, ModTime: time.Unix(0, 0),
		Format: tar.FormatPAX,
	})
	if err != nil {
		return err
	}
	blob, err := s.open(id, e)
	if err != nil {
		return err
	}
	defer blob.Close()
	n, err := io.Copy(out, blob)
	if err == nil && n != e.Size {
		err = fmt.Errorf("%s has %d bytes, not %d", e.Hash, n, e.Size)
	}
	return err
}
