package kube

import (
	"context"
	"io"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// named are Kubernetes' names of the streams.
var named = [...]string{corev1.LogStreamStdout, corev1.LogStreamStderr}

// podLogs asks kubelets what pods have written.
type podLogs struct {
	api    *api
	merged atomic.Bool // the cluster does not tell stdout from stderr
	asked  atomic.Bool // its version, on which merged rests
}

// open reads a stream from the kubelet. Clusters tell the two apart only with the
// feature PodLogsQuerySplitStreams; elsewhere all is stdout.
func (l *podLogs) open(ctx context.Context, pod string, stream int, follow bool) (io.ReadCloser, error) {
	if l.splits(ctx) {
		rc, err := l.api.output(ctx, pod, corev1.PodLogOptions{Follow: follow, Stream: &named[stream]})
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return rc, err
		}
		if !strings.Contains(err.Error(), "stream") { // nothing is wrong with the question for one
			return nil, err
		}
		l.merged.Store(true)
	}
	return l.openAll(ctx, pod, stream, follow)
}

// splitsSince is the minor version whose servers understand the question for one
// stream, if only to refuse it; older ones would answer with both.
const splitsSince = 32

// splits reports whether the cluster may tell the streams apart.
func (l *podLogs) splits(ctx context.Context) bool {
	if !l.asked.Load() {
		minor, err := l.api.minor(ctx)
		if err != nil {
			return false
		}
		l.merged.Store(minor < splitsSince)
		l.asked.Store(true)
	}
	return !l.merged.Load()
}

func (l *podLogs) openAll(ctx context.Context, pod string, stream int, follow bool) (io.ReadCloser, error) {
	if stream != 0 {
		return io.NopCloser(eof{}), nil
	}
	return l.api.output(ctx, pod, corev1.PodLogOptions{Follow: follow})
}
