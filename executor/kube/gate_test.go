package kube

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
)

// gatedPod is a view of a gated pod.
func gatedPod(w *work, name string) *podView {
	return &podView{name: name, job: w.job, podState: &podState{phase: corev1.PodPending, gated: true}}
}

// TestLetGo: of an attempt one pod is let go, once, and only if it would end before the
// attempt's fence. What was never let go is given up at once, for certain; what may
// have been is not.
func TestLetGo(t *testing.T) {
	var asked []string
	code := http.StatusOK
	h := served(t, func(r *http.Request) (int, string) {
		if r.Method != http.MethodPatch {
			return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound)
		}
		b, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(b), `"name":"cloudshare/start"`) {
			t.Errorf("asked for %s", b)
		}
		asked = append(asked, r.URL.Path)
		if code != http.StatusOK {
			return code, status(code, map[int]metav1.StatusReason{
				403: metav1.StatusReasonForbidden,
				500: metav1.StatusReasonInternalError,
			}[code])
		}
		return code, `{"kind":"Pod","apiVersion":"v1"}`
	})
	bound, _ := h.Bound(executor.Task{Timeout: time.Minute})
	for n, c := range []struct {
		name    string
		fence   time.Duration // from now; 0 = none
		adopted bool
		code    int
		let     bool
		cause   executor.Cause // of the end after a stop, or of its own
		said    string
	}{
		{"an own task", 0, false, 200, true, 0, ""},
		{"in time", bound, false, 200, true, 0, ""},
		{"too late", bound - h.cfg.ControlLag + h.cfg.CallTimeout - time.Second, false, 200, false, executor.Stopped, "fence"},
		{"of an earlier life", bound, true, 200, false, executor.Stopped, ""},
		{"forbidden", 0, false, 403, false, executor.Stopped, "guide operator"},
		{"not known", 0, false, 500, true, 0, ""},
	} {
		w := h.attempt(t, uint32(n))
		w.Task.Timeout, w.adopted, w.let, code, asked = time.Minute, c.adopted, "", c.code, nil
		if c.fence > 0 {
			w.Task.Fence = executor.Boottime() + int64(c.fence)
		}
		h.view.changedPod(nil, gatedPod(w, "p"))
		_, err := h.reconciler.reconcileAttempt(t.Context(), w, &jobView{}, h.view.podOf(w.job))
		if (err != nil) != (c.code == 500) || (w.let == "p") != c.let || len(asked) > 0 != (c.let || c.code == 403) {
			t.Errorf("%s: %v, let %q after %v", c.name, err, w.let, asked)
		}
		if (w.kill == nil) != c.let {
			t.Errorf("%s: given up %v", c.name, w.kill)
		}
		if w.kill != nil && !c.adopted {
			if _, err = h.reconciler.reconcileAttempt(t.Context(), w, nil, nil); err != nil || w.Ended == nil ||
				w.Ended.Result.Cause != c.cause || !strings.Contains(w.Ended.Result.Detail, c.said) {
				t.Errorf("%s: %v, %+v", c.name, err, w.Ended)
			}
		}
	}
}

// TestOnePodOnly: Kubernetes made two pods of one Job; the second is never let go, also
// not by the broker's next life.
func TestOnePodOnly(t *testing.T) {
	var asked []string
	h := served(t, func(r *http.Request) (int, string) {
		asked = append(asked, r.URL.Path)
		return http.StatusOK, `{"kind":"Pod","apiVersion":"v1"}`
	})
	w := h.attempt(t, 1)
	w.let = ""
	h.view.changedPod(nil, gatedPod(w, "a"))
	for _, name := range []string{"b", "a", "b"} {
		if _, err := h.reconciler.reconcileAttempt(t.Context(), w, &jobView{}, gatedPod(w, name)); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0] != asked[1] || !strings.HasSuffix(asked[0], "/pods/b") {
		t.Errorf("asked for %v, want b alone", asked)
	}
	var let string
	if err := readJSON(w.dir+"/"+letFile, &let); err != nil || let != "b" {
		t.Errorf("noted %q, %v", let, err)
	}
	running := gatedPod(w, "b")
	running.gated = false
	h.view.changedPod(nil, running)
	if pod := h.view.podOf(w.job); pod.name != "b" {
		t.Errorf("looks at %s", pod.name)
	}
}

// TestStoppedBeforeItsPod: nobody has to say that nothing runs where nothing was let go,
// nor that a Job was made. A broker that was restarted does not know it.
func TestStoppedBeforeItsPod(t *testing.T) {
	h := served(t, func(r *http.Request) (int, string) {
		t.Errorf("%s %s", r.Method, r.URL)
		return http.StatusInternalServerError, ""
	})
	for n, made := range []bool{true, false} {
		w := h.attempt(t, uint32(n))
		w.let, w.made, w.kill = "", made, &kill{cause: executor.Stopped, why: "enough"}
		if _, err := h.reconciler.reconcileAttempt(t.Context(), w, nil, nil); err != nil || w.Ended == nil ||
			w.Ended.Result.Cause != executor.Stopped {
			t.Errorf("got %v, %+v", err, w.Ended)
		}
	}
}

// TestReplaced: the pod that was let go went, and Kubernetes made another before anybody here
// looked. That one never runs, so the attempt ends by what was last known of its own, and
// after a restart by that it is not there.
func TestReplaced(t *testing.T) {
	there := false
	h := served(t, func(r *http.Request) (int, string) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s", r.Method, r.URL)
		case r.URL.Query().Get("fieldSelector") != "metadata.name=p":
			t.Errorf("asked for %s", r.URL)
		case there:
			return http.StatusOK, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"}}]}`
		}
		return http.StatusOK, `{"kind":"PodList","apiVersion":"v1","items":[]}`
	})
	look := func(w *work) time.Duration {
		t.Helper()
		again, err := h.reconciler.reconcileAttempt(t.Context(), w, &jobView{}, h.view.podOf(w.job))
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	vanishes := func(w *work, why string) {
		t.Helper()
		look(w)
		if w.Ended == nil || w.Ended.Result.Cause != executor.Vanished ||
			!strings.Contains(w.Ended.Result.Detail, why) {
			t.Errorf("got %+v, want it lost: %s", w.Ended, why)
		}
	}
	w := h.attempt(t, 1)
	first := &podView{name: "p", node: "node-1", job: w.job, podState: &podState{phase: corev1.PodRunning, running: monday}}
	h.view.changedPod(nil, first)
	h.view.changedPod(nil, gatedPod(w, "a"))
	if look(w); h.works.isEnded(w) {
		t.Fatalf("got %+v while its pod runs", w.Ended)
	}
	h.view.changedPod(first, nil)
	vanishes(w, "removed by force")
	if pod := h.view.podOf(w.job); pod == nil || pod.name != "a" {
		t.Errorf("%+v is to be removed, want a", pod)
	}

	w = h.attempt(t, 2)
	w.adopted, w.began = true, monday
	h.view.changedPod(nil, gatedPod(w, "a"))
	there = true
	if again := look(w); again != unseen || h.works.isEnded(w) {
		t.Errorf("its pod is there: got %s, %+v, want another look", again, w.Ended)
	}
	there = false
	vanishes(w, "has made another")
}
