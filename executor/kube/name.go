package kube

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
)

// Labels of Jobs and of their pods. A broker finds its own by labelHome.
const (
	labelHome    = "cloudshare/home" // whose they are: made once for a data folder
	labelFed     = "cloudshare/federation"
	labelSite    = "cloudshare/site"
	labelOwner   = "cloudshare/owner"
	labelJob     = "cloudshare/job"
	labelTask    = "cloudshare/task"
	labelAttempt = "cloudshare/attempt"
	labelToken   = "cloudshare/token"
	labelNetwork = "cloudshare/network" // what NetworkPolicies give it: none, outbound or host
	// labelOfJob is Kubernetes' own, on the pods of a Job.
	labelOfJob = "batch.kubernetes.io/job-name"
	// noteName is an annotation: the attempt's whole name.
	noteName = "cloudshare/attempt-name"
	// noteEnd is an annotation of a pod that is being ended: why, see kill.order.
	noteEnd = "cloudshare/end"
)

// Lengths of names: a Job's is a label of its pods, whose own names are longer
// by six.
const (
	maxLabel    = 63
	readable    = 40 // of an attempt's name in a Job's
	digestChars = 12 // 60 bits
)

// lower is base32 as DNS names take it.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return lower.EncodeToString(sum[:])[:digestChars]
}

// jobName returns the name of an attempt's Job in all lives of the broker whose data
// folder is home. It is a DNS label of at most 56 bytes.
func jobName(home string, id executor.ID) string {
	name := id.String()
	short := strings.ReplaceAll(name, ".", "-")
	short = strings.Trim(short[:min(len(short), readable)], "-")
	return "cs-" + short + "-" + digest(home+"/"+name)
}

// labelValue makes any text a label's value: what is too long, or has other
// characters, is told apart by its digest.
func labelValue(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return -1
	}, text)
	trimmed := strings.Trim(clean, "-_.")
	if trimmed == text && len(text) <= maxLabel {
		return text
	}
	trimmed = strings.TrimRight(trimmed[:min(len(trimmed), maxLabel-digestChars-1)], "-_.")
	return strings.TrimLeft(trimmed+"."+digest(text), ".")
}

// labels name an attempt for people and for the next life of its broker.
func (b *jobBuilder) labels(t executor.Task) map[string]string {
	l := map[string]string{
		labelHome: b.home, labelSite: t.Site, labelOwner: t.Owner, labelJob: t.Job,
		labelTask:    strconv.FormatUint(uint64(t.ID.Task), 10),
		labelAttempt: strconv.FormatUint(uint64(t.Attempt), 10),
		labelToken:   strconv.FormatUint(t.Token, 10),
		labelNetwork: b.cfg.Foreign.Of(t, b.cfg.Site).String(),
	}
	if b.cfg.Federation != "" {
		l[labelFed] = b.cfg.Federation
	}
	for k, v := range l {
		l[k] = labelValue(v)
	}
	return l
}
