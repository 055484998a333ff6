package node

import (
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// QuotaError says by which quota of its site a job was refused. It wraps ErrFull.
type QuotaError struct {
	Site string
	fsm.Use
	Need uint64 // what the job would use more
}

// Error says it in one line, with what to do.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("site %s uses %d of its %d %s, and this job takes %d more: wait until jobs end or cancel some (`cloudshare quota` shows all)",
		e.Site, e.Used, e.Limit, QuotaMeaning(e.Quota), e.Need)
}

// Unwrap has errors.Is find ErrFull.
func (e *QuotaError) Unwrap() error { return ErrFull }

// quotaMeanings say what each quota counts.
var quotaMeanings = map[string]string{
	command.QuotaTasks:     "tasks that have not ended",
	command.QuotaJobs:      "open jobs",
	command.QuotaBytes:     "bytes of open jobs' commands, environments and lists",
	command.QuotaShapes:    "different requirements of open jobs (size, image, sites, selectors)",
	command.QuotaNumbers:   "jobs and gaps in job numbers",
	command.QuotaKept:      "ended jobs that are kept",
	command.QuotaKeptBytes: "bytes of ended jobs that are kept",
	command.QuotaRecords:   "details of ended tasks that are kept",
}

// QuotaMeaning says what a quota counts, in a few words.
func QuotaMeaning(quota string) string { return quotaMeanings[quota] }

// QuotaReader is what a refusal by a quota is told from.
type QuotaReader interface {
	Quotas(site string) (fsm.QuotaView, bool)
}

// RefusedByQuota words a refusal by a quota, as the state stands now; nil for any other
// code.
func RefusedByQuota(code command.Code, site string, js *command.JobSpec, s QuotaReader) error {
	quota := code.Quota()
	v, ok := s.Quotas(site)
	if quota == "" || !ok {
		return nil
	}
	for _, u := range v.Uses {
		if u.Quota == quota {
			return &QuotaError{Site: site, Use: u, Need: quotaNeed(quota, js)}
		}
	}
	return nil
}

// quotaNeed returns what a job takes of a quota.
func quotaNeed(quota string, js *command.JobSpec) uint64 {
	switch quota {
	case command.QuotaTasks:
		return uint64(js.Count)
	case command.QuotaBytes:
		return js.Bytes()
	}
	return 1
}
