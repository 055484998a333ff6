package command

import (
	"bytes"
	"slices"
)

// shared says what a job of a Submit has in common with the job before it, and is therefore not written again: jobs
// that are submitted together mostly differ in their arguments only, if in anything.
type shared uint8

const (
	// sharesTerms: everything but number, count, date and payload.
	sharesTerms shared = 1 << iota
	sharesPayload

	sharesAll = sharesTerms | sharesPayload
)

// sharedWith returns what j shares with the job before it; a first one shares nothing.
func (j *JobSpec) sharedWith(before *JobSpec, first bool) (with shared) {
	if first {
		return 0
	}
	if j.sameTerms(before) {
		with |= sharesTerms
	}
	if bytes.Equal(j.Payload, before.Payload) {
		with |= sharesPayload
	}
	return with
}

func (j *JobSpec) sameTerms(o *JobSpec) bool {
	return j.Need == o.Need && j.Image == o.Image && j.Delivers == o.Delivers && j.Gated == o.Gated &&
		j.TimeoutMs == o.TimeoutMs && j.MaxAttempts == o.MaxAttempts &&
		j.OnLoss == o.OnLoss && j.Priority == o.Priority && j.Nice == o.Nice &&
		slices.Equal(j.Only, o.Only) && slices.Equal(j.Not, o.Not) && slices.Equal(j.Selectors, o.Selectors)
}

// takeTerms copies what sameTerms compares. The lists are shared: nobody changes those of a decoded job.
func (j *JobSpec) takeTerms(o *JobSpec) {
	num, count, created, payload := j.Num, j.Count, j.CreatedMs, j.Payload
	*j = *o
	j.Num, j.Count, j.CreatedMs, j.Payload = num, count, created, payload
}
