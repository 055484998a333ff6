package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cloudshare/cloudshare/executor"
)

// TestEndedInPlace: what runs is ended by its active deadline, so that its output is there
// when it has; what has not begun, or does not end so, is deleted.
func TestEndedInPlace(t *testing.T) {
	const patch, remove = http.MethodPatch, http.MethodDelete
	for name, c := range map[string]struct {
		waits bool // it has not begun
		goes  bool // somebody deletes it
		late  bool // it was asked to end before, and has not
		said  int
		why   metav1.StatusReason
		calls []string
		again time.Duration
	}{
		"runs":        {said: 200, calls: []string{patch}, again: askEach + time.Second},
		"waits":       {waits: true, said: 200, calls: []string{remove}, again: askEach},
		"goes":        {goes: true, said: 200, calls: []string{remove}, again: askEach},
		"stays":       {late: true, said: 200, calls: []string{remove}, again: askEach},
		"is gone":     {said: 404, why: metav1.StatusReasonNotFound, calls: []string{patch}, again: askEach + time.Second},
		"has ended":   {said: 422, why: metav1.StatusReasonInvalid, calls: []string{patch}, again: unseen},
		"forbidden":   {said: 403, why: metav1.StatusReasonForbidden, calls: []string{patch, remove}, again: askEach},
		"no hook":     {said: 500, why: metav1.StatusReasonInternalError, calls: []string{patch, remove}, again: askEach},
		"server away": {said: 503, why: metav1.StatusReasonServiceUnavailable, calls: []string{patch}},
	} {
		var calls []string
		h := served(t, func(r *http.Request) (int, string) {
			calls = append(calls, r.Method)
			if r.Method == patch && c.said != http.StatusOK {
				return c.said, status(c.said, c.why)
			}
			return http.StatusOK, `{"kind":"Pod","apiVersion":"v1"}`
		})
		w := h.attempt(t, 0)
		w.kill = &kill{cause: executor.Stopped, why: "test"}
		if c.late {
			w.spared = time.Now()
		}
		s := &podState{running: monday, deleting: c.goes}
		if c.waits {
			s.running = time.Time{}
		}
		pod := &podView{name: "p", node: "node-1", job: w.job, podState: s}
		again, err := h.reconciler.steer(t.Context(), w, pod)
		if !slices.Equal(calls, c.calls) || (err != nil) != (c.again == 0) || again > c.again ||
			again < c.again-time.Second {
			t.Errorf("%s: got %v, %s, %v, want %v and %s", name, calls, again, err, c.calls, c.again)
		}
		calls = nil
		if again, err = h.reconciler.steer(t.Context(), w, pod); c.again > 0 &&
			(len(calls) > 0 || again <= 0 || err != nil) {
			t.Errorf("%s: a moment later: got %v, %s, %v, want nothing asked", name, calls, again, err)
		}
	}
}

// TestExpirePod: a pod is told to end only as long as it runs as it was seen to, with a
// note for people and for the next life of the broker.
func TestExpirePod(t *testing.T) {
	var sent []struct {
		Op, Path string
		Value    any
	}
	h := served(t, func(r *http.Request) (int, string) {
		if b, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(b, &sent) != nil {
			t.Errorf("got %v, %s", err, b)
		}
		return http.StatusOK, `{"kind":"Pod","apiVersion":"v1"}`
	})
	pod := &podView{name: "p", podState: &podState{running: monday.Local(), at: 1}}
	if err := h.api.expirePod(t.Context(), pod, "why"); err != nil || len(sent) != 3 {
		t.Fatalf("got %v, and %v was sent", err, sent)
	}
	if s := sent[0]; s.Op != "test" || s.Path != "/status/containerStatuses/1/state/running/startedAt" ||
		s.Value != "2026-11-16T12:00:00Z" {
		t.Errorf("first %+v", s)
	}
	if s := sent[1]; s.Path != "/metadata/annotations/cloudshare~1end" || s.Value != "why" {
		t.Errorf("second %+v", s)
	}
	if s := sent[2]; s.Path != "/spec/activeDeadlineSeconds" || s.Value != 1.0 {
		t.Errorf("third %+v", s)
	}
}

// TestDoneBeforeItsDeadline: a task that exits by itself in the moment before it is ended in place is told so, though
// its container's end is seen before its pod's phase, which is waited for a while. What was killed waits for nothing.
func TestDoneBeforeItsDeadline(t *testing.T) {
	h := served(t, func(*http.Request) (int, string) { return http.StatusOK, `{"minor":"30"}` })
	for n, c := range []struct {
		name   string
		ended  *corev1.ContainerStateTerminated
		waits  bool
		late   bool // its phase does not come in time
		phase  corev1.PodPhase
		reason string
		cause  executor.Cause
		code   int
	}{
		{name: "done", ended: term(0, "Completed", ""), waits: true, phase: corev1.PodSucceeded},
		{name: "failed", ended: term(42, "Error", ""), waits: true, phase: corev1.PodFailed, code: 42},
		{name: "out of memory", ended: term(137, oomKilled, ""), waits: true, phase: corev1.PodFailed, code: 137},
		{
			name: "heeds TERM", ended: term(0, "Completed", ""), waits: true, phase: corev1.PodFailed,
			reason: deadlineExceeded, cause: executor.TimedOut, code: 137,
		},
		{name: "no phase", ended: term(0, "Completed", ""), waits: true, late: true, cause: executor.TimedOut, code: 137},
		{name: "killed", ended: term(137, "Error", ""), cause: executor.TimedOut, code: 137},
	} {
		w := h.attempt(t, uint32(n))
		w.Task.Timeout, w.began, w.kill = time.Minute, monday, &kill{cause: executor.TimedOut}
		shown := func(phase corev1.PodPhase, reason string) (time.Duration, error) {
			p := h.decoder.readPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: w.job, Namespace: "lent", Annotations: map[string]string{noteEnd: orderTimedOut},
					Labels: map[string]string{labelHome: h.id, labelOfJob: w.job},
				},
				Spec: corev1.PodSpec{NodeName: "node-1"},
				Status: corev1.PodStatus{
					Phase: phase, Reason: reason,
					ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: c.ended}}},
				},
			})
			h.view.changedPod(w.pod, p)
			return h.reconciler.reconcileAttempt(t.Context(), w, &jobView{}, p)
		}
		again, err := shown(corev1.PodRunning, "")
		if err != nil || (again == relook) != c.waits || (w.Ended == nil) != c.waits {
			t.Fatalf("%s: got %s, %v, %+v", c.name, again, err, w.Ended)
		}
		if c.late {
			w.ceased = time.Now().Add(-phaseWait)
			c.phase = corev1.PodRunning
		}
		if c.waits {
			again, err = shown(c.phase, c.reason)
		}
		if err != nil || again != 0 || w.Ended == nil || w.Ended.Result.Cause != c.cause ||
			w.Ended.Result.ExitCode != c.code {
			t.Errorf("%s: got %s, %v, %+v", c.name, again, err, w.Ended)
		}
	}
}

// TestOrderOutlivesTheBroker: a broker that was killed between the end that it asked for
// and its result knows afterwards what it had asked for.
func TestOrderOutlivesTheBroker(t *testing.T) {
	h := served(t, func(*http.Request) (int, string) { return http.StatusOK, `{"minor":"30"}` })
	for n, k := range []*kill{
		{cause: executor.TimedOut},
		{cause: executor.Stopped, why: "its owner\nwants its cores"},
		leaseEnded(),
	} {
		w := h.attempt(t, uint32(n))
		w.Task.Timeout, w.began = time.Minute, monday
		p := h.decoder.readPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p", Namespace: "lent", Annotations: map[string]string{noteEnd: k.order()},
				Labels: map[string]string{labelHome: h.id, labelOfJob: w.job},
			},
			Spec: corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{
				Phase: corev1.PodFailed, Reason: deadlineExceeded,
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: term(143, "Error", "")}}},
			},
		})
		if _, err := h.reconciler.reconcileAttempt(t.Context(), w, &jobView{}, p); err != nil || w.Ended == nil {
			t.Fatalf("got %v, %+v", err, w.Ended)
		}
		if r, want := w.Ended.Result, inLine(k.detail(w.Task)); r.Cause != k.cause || r.Detail != want ||
			r.Signal != 15 || strings.Contains(r.Detail, "\n") {
			t.Errorf("got %+v, want cause %d and %q", r, k.cause, want)
		}
	}
	if readOrder("") != nil {
		t.Error("an order out of nothing")
	}
}
