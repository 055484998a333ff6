package kube

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/attempts"
)

// served is a handler whose API server answers so; nothing is watched.
func served(t *testing.T, answer func(r *http.Request) (code int, body string)) *Handler {
	t.Helper()
	return servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		code, body := answer(r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	})
}

func servedBy(t *testing.T, answer http.HandlerFunc) *Handler {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	cfg := good(t)
	cfg.Cluster = kubeconfig(t, s.URL)
	h, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func status(code int, reason metav1.StatusReason) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"no","details":{"retryAfterSeconds":1}}`, code, reason)
}

// attempt is one whose Job was made and whose pod, p, was let go.
func (h *Handler) attempt(t *testing.T, n uint32) *work {
	t.Helper()
	w := h.works.newWork(attempts.NewAttempt(executor.Task{
		ID: executor.ID{Job: "site-1.7", Task: n, Attempt: 1, Token: 1}, Machine: "kube/node-1",
		Image: "a",
	}))
	w.made, w.let = true, "p"
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.works.mu.Lock()
	defer h.works.mu.Unlock()
	h.works.byJob[w.job] = w
	h.works.attempts.Enter(w)
	return w
}

// TestSentAgain: a create is repeated at once only if it was turned away unread.
// After a server's error the Job may be there, and what a repeat is told, such as
// that a quota is used up by it, would be taken for its refusal.
func TestSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int
		calls   int
		failed  bool
	}{
		"busy":      {[]int{429, 201}, 2, false},
		"uncertain": {[]int{503, 403}, 1, true},
	} {
		calls := 0
		h := served(t, func(*http.Request) (int, string) {
			calls++
			switch code := c.answers[calls-1]; code {
			case http.StatusCreated:
				return code, `{"kind":"Job","apiVersion":"batch/v1"}`
			case http.StatusTooManyRequests:
				return code, status(code, metav1.StatusReasonTooManyRequests)
			default:
				return code, status(code, metav1.StatusReasonServiceUnavailable)
			}
		})
		err := refused(h.api.create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x"}}))
		_, refusal := err.(*refusal) //nolint:errorlint // what it is itself
		if refusal || calls != c.calls || (err != nil) != c.failed {
			t.Errorf("%s: got %v after %d calls, want %d", name, err, calls, c.calls)
		}
	}
}

// TestPodNotSeen: what the watch of pods has not shown may be there all the same,
// and what a Job says of its end counts when its pod is gone.
func TestPodNotSeen(t *testing.T) {
	there := true
	h := served(t, func(r *http.Request) (int, string) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/pods") && there:
			return http.StatusOK, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"}}]}`
		case strings.HasSuffix(r.URL.Path, "/pods"):
			return http.StatusOK, `{"kind":"PodList","apiVersion":"v1","items":[]}`
		}
		return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound)
	})
	good := &jobView{ended: true, reason: "CompletionsReached", begun: monday, succeeded: later.Time}
	bad := &jobView{ended: true, reason: "BackoffLimitExceeded"}
	decline := &kill{cause: executor.Stopped, decline: true, why: "exceeded quota"}
	for n, c := range []struct {
		name  string
		job   *jobView
		kill  *kill
		cause executor.Cause
		said  string
	}{
		{"succeeded", good, nil, executor.Exited, ""},
		{"failed", bad, nil, executor.Stopped, "BackoffLimitExceeded"},
		{"given up", nil, decline, 0, ""},
		{"deleted", nil, nil, executor.Stopped, "deleted from outside"},
	} {
		w := h.attempt(t, uint32(n))
		w.seen, w.kill, w.deciding = true, c.kill, c.kill != nil
		there = true
		again, err := h.reconciler.reconcileAttempt(t.Context(), w, c.job, nil)
		if again != unseen || err != nil || h.works.isEnded(w) {
			t.Errorf("%s, and a pod is there: got %s, %v, ended %v; want another look", c.name, again, err, w.Ended)
		}
		there = false
		if _, err = h.reconciler.reconcileAttempt(t.Context(), w, c.job, nil); err != nil || !h.works.isEnded(w) {
			t.Fatalf("%s: got %v, and no end", c.name, err)
		}
		if c.kill != nil {
			if !w.declined || w.Ended != nil {
				t.Errorf("%s: got %+v, want it declined", c.name, w.Ended)
			}
			continue
		}
		if r := w.Ended.Result; r.Cause != c.cause || !strings.Contains(r.Detail, c.said) || c.job == good &&
			r.Run != 3*time.Second {
			t.Errorf("%s: got %+v", c.name, r)
		}
	}
}

// TestGoneWithItsNode: the last that was seen of a pod is that it ran; its Job says
// that it came to a good end before it was removed.
func TestGoneWithItsNode(t *testing.T) {
	h := served(t, func(*http.Request) (int, string) {
		return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound)
	})
	for n, want := range []executor.Cause{executor.Exited, executor.Vanished} {
		w, v := h.attempt(t, uint32(n)), &jobView{begun: monday}
		w.pod = &podView{node: "node-1", job: w.job, podState: &podState{running: monday}}
		if want == executor.Exited {
			v.ended, v.succeeded = true, later.Time
		}
		if _, err := h.reconciler.reconcileAttempt(t.Context(), w, v, nil); err != nil || w.Ended == nil ||
			w.Ended.Result.Cause != want {
			t.Errorf("got %v, %+v, want cause %d", err, w.Ended, want)
		}
	}
}

// TestRanBeforeItWasDeclined: a node took the pod after all while its start was
// being given up. Another site must not be told that nothing ran.
func TestRanBeforeItWasDeclined(t *testing.T) {
	h := served(t, func(*http.Request) (int, string) { return http.StatusNotFound, "" })
	for n, r := range []executor.Result{{Started: monday, Run: time.Second}, vanished("removed by force")} {
		w := h.attempt(t, uint32(n))
		w.deciding, w.kill = true, &kill{cause: executor.Stopped, decline: true, why: "Insufficient cpu"}
		err := h.finisher.endAttempt(w, r, [2]int64{})
		if err != nil || w.declined || w.Ended == nil || w.Ended.Result != r {
			t.Errorf("got %v, declined %v, %+v; want %+v", err, w.declined, w.Ended, r)
		}
	}
}

// TestOverdueWhileAway: the broker comes back when Kubernetes has ended a task over
// its deadline, or is about to.
func TestOverdueWhileAway(t *testing.T) {
	h := served(t, func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			return http.StatusOK, `{"kind":"PodList","apiVersion":"v1","items":[]}`
		}
		return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound)
	})
	over := readJob(&batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded},
	}}})
	gone, ending := h.attempt(t, 0), h.attempt(t, 1)
	ending.pod = &podView{
		node: "node-1", job: ending.job, over: true,
		podState: &podState{deleting: true, running: monday, ended: term(143, "Error", "")},
	}
	for _, w := range []*work{gone, ending} {
		w.Task.Timeout, w.began = time.Minute, monday
		if _, err := h.reconciler.reconcileAttempt(t.Context(), w, over, w.pod); err != nil || w.Ended == nil {
			t.Fatalf("got %v, %+v", err, w.Ended)
		}
		if r := w.Ended.Result; r.Cause != executor.TimedOut || r.Run < time.Minute || r.Signal == 0 ||
			!strings.Contains(r.Detail, "timeout of 1m0s") {
			t.Errorf("got %+v, want it over its timeout", r)
		}
	}
	quiet := h.attempt(t, 2)
	if _, err := h.reconciler.reconcileAttempt(t.Context(), quiet, over, nil); err != nil || quiet.Ended == nil ||
		quiet.Ended.Result.Cause != executor.Stopped {
		t.Errorf("never seen to run: got %v, %+v, want a loss", err, quiet.Ended)
	}
}

// TestKeptBeforeItsJobGoes: a Job is removed when the end of its attempt is on the disk,
// and not before; else a power failure here would leave nobody who knows it.
func TestKeptBeforeItsJobGoes(t *testing.T) {
	removed := 0
	h := served(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodDelete {
			removed++
		}
		return http.StatusOK, status(http.StatusOK, "")
	})
	w := h.attempt(t, 0)
	if err := h.finisher.endAttempt(w, executor.Result{}, [2]int64{}); err != nil {
		t.Fatal(err)
	}
	end := filepath.Join(w.dir, endFile)
	good, err := os.ReadFile(end)
	if err == nil {
		if err = os.Remove(end); err == nil {
			err = os.Symlink(endFile, end) // what cannot be opened cannot be synced
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = h.finisher.cleanUp(t.Context(), w, &jobView{name: w.job}, nil); err == nil || removed > 0 {
		t.Errorf("got %v, and its Job was removed %d times", err, removed)
	}
	if err = errors.Join(os.Remove(end), os.WriteFile(end, good, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err = h.finisher.cleanUp(t.Context(), w, &jobView{name: w.job}, nil); err != nil || removed != 1 {
		t.Errorf("got %v, and its Job was removed %d times, want once", err, removed)
	}
}

// TestEndNotWritten: the Job of an attempt whose end could not be written, as on a full
// disk, stays until it could, since nobody else knows the end.
func TestEndNotWritten(t *testing.T) {
	removed := 0
	h := served(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodDelete {
			removed++
		}
		return http.StatusOK, status(http.StatusOK, "")
	})
	w := h.attempt(t, 0)
	full := filepath.Join(w.dir, endFile+".new")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.finisher.endAttempt(w, executor.Result{ExitCode: 7}, [2]int64{}); err != nil || w.Ended == nil {
		t.Fatalf("got %v, %+v", err, w.Ended)
	}
	if _, err := h.finisher.cleanUp(t.Context(), w, &jobView{name: w.job}, nil); err == nil || removed > 0 {
		t.Errorf("got %v, and its Job was removed %d times", err, removed)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if _, err := h.finisher.cleanUp(t.Context(), w, &jobView{name: w.job}, nil); err != nil || removed != 1 {
		t.Errorf("got %v, and its Job was removed %d times, want once", err, removed)
	}
	var e kept
	if err := readJSON(filepath.Join(w.dir, endFile), &e); err != nil || e.Result.ExitCode != 7 {
		t.Errorf("its folder has %+v, %v", e, err)
	}
}

// TestTooLargeToStore: the server's own words about a Job that its store does not take
// are about something else.
func TestTooLargeToStore(t *testing.T) {
	h := served(t, func(*http.Request) (int, string) {
		return http.StatusUnprocessableEntity, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	})
	for n, large := range []bool{false, true} {
		w := h.attempt(t, uint32(n))
		w.Task.Command = []string{"echo"}
		if large {
			w.Task.Command = append(w.Task.Command, strings.Repeat("$", 900_000))
		}
		err := h.client.create(t.Context(), w)
		if !errors.Is(err, executor.ErrUnfit) || strings.Contains(err.Error(), "put data into a file") != large {
			t.Errorf("large %t: got %v", large, err)
		}
	}
}
