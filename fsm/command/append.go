package command

import "google.golang.org/protobuf/encoding/protowire"

func appendParams(dst []byte, p *Params) []byte {
	dst = appendString(dst, p.Policy)
	dst = append(dst, byte(p.Running))
	dst = appendBool(dst, p.PreferOwn)
	dst = appendBool(dst, p.ClaimedHome)
	dst = appendBool(dst, p.FixedOrder)
	for _, v := range [...]int64{
		p.ReserveAfterMs, p.RetainMs, p.RetainJobs, p.DepartureMs,
		p.RateCPU, p.RateMem, p.RateGPU, p.QuantumMs, p.LeaseMs, p.MarginMs,
	} {
		dst = appendInt(dst, v)
	}
	return dst
}

func appendRegister(dst []byte, b *Register) []byte {
	dst = append(dst, b.Node[:]...)
	dst = append(dst, b.Boot[:]...)
	dst = appendLen(dst, len(b.Known))
	for i := range b.Known {
		dst = append(dst, b.Known[i][:]...)
	}
	dst = appendString(dst, b.HTTP)
	dst = appendString(dst, b.Peer)
	dst = appendString(dst, b.Gossip)
	dst = protowire.AppendVarint(dst, uint64(b.MaxVersion))
	dst = protowire.AppendVarint(dst, b.After)
	return appendAttempts(appendAttempts(dst, b.Held), b.Lost)
}

func appendSubmit(dst []byte, b *Submit) []byte {
	dst = protowire.AppendVarint(dst, b.Settled)
	dst = appendLen(dst, len(b.Jobs))
	before := &JobSpec{}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		dst = appendJob(dst, j, j.sharedWith(before, i == 0))
		before = j
	}
	return dst
}

// appendJob writes a job without what it shares with the job before it.
func appendJob(dst []byte, j *JobSpec, with shared) []byte {
	dst = protowire.AppendVarint(dst, j.Num)
	dst = protowire.AppendVarint(dst, uint64(j.Count))
	dst = append(appendInt(dst, j.CreatedMs), byte(with))
	if with&sharesTerms == 0 {
		dst = appendTerms(dst, j)
	}
	if with&sharesPayload == 0 {
		dst = protowire.AppendBytes(dst, j.Payload)
	}
	return dst
}

func appendTerms(dst []byte, j *JobSpec) []byte {
	dst = appendResources(dst, j.Need)
	dst = append(dst, j.marks())
	dst = appendInt(dst, j.TimeoutMs)
	dst = protowire.AppendVarint(dst, uint64(j.MaxAttempts))
	dst = append(dst, byte(j.OnLoss))
	dst = appendSigned(dst, int64(j.Order()))
	dst = appendStrings(dst, j.Only)
	dst = appendStrings(dst, j.Not)
	return appendStrings(dst, j.Selectors)
}

func appendOffer(dst []byte, b *Offer) []byte {
	dst = protowire.AppendVarint(dst, b.Version)
	dst, sets := appendLabelSets(dst, b)
	dst = appendLen(dst, len(b.Machines))
	for i := range b.Machines {
		m := &b.Machines[i]
		dst = appendString(dst, m.Name)
		dst = appendResources(dst, m.Resources)
		dst = appendResources(dst, m.Whole)
		dst = append(dst, byte(m.Runs))
		dst = appendLen(appendInt(dst, m.Slots), sets[m.Labels])
	}
	return appendResources(appendResources(dst, b.Capacity), b.Home)
}

// appendLabelSets writes each different set of labels of an offer's machines once, in the order of
// first use, and numbers the sets from 1; 0 means no labels.
func appendLabelSets(dst []byte, b *Offer) ([]byte, map[Labels]int) {
	sets := map[Labels]int{"": 0}
	var texts []string
	for i := range b.Machines {
		l := b.Machines[i].Labels
		if _, ok := sets[l]; !ok {
			sets[l] = len(sets)
			texts = append(texts, string(l))
		}
	}
	return appendStrings(dst, texts), sets
}

func appendStarted(dst []byte, b *Started) []byte {
	dst = appendLen(dst, len(b.Attempts))
	for i := range b.Attempts {
		dst = appendAttempt(dst, &b.Attempts[i].AttemptRef)
		dst = appendInt(dst, b.Attempts[i].DelayMs)
	}
	return dst
}

func appendBound(dst []byte, b *Bound) []byte {
	dst = appendLen(dst, len(b.Attempts))
	for i := range b.Attempts {
		dst = appendAttempt(dst, &b.Attempts[i].AttemptRef)
		dst = appendInt(dst, b.Attempts[i].BoundMs)
	}
	return dst
}

func appendComplete(dst []byte, b *Complete) []byte {
	dst = appendLen(dst, len(b.Attempts))
	for i := range b.Attempts {
		a := &b.Attempts[i]
		dst = appendAttempt(dst, &a.AttemptRef)
		dst = append(dst, byte(a.Outcome))
		dst = appendSigned(dst, int64(a.ExitCode))
		dst = appendSigned(dst, int64(a.Signal))
		dst = appendEndedFlags(dst, a)
		dst = appendInt(dst, a.DelayMs)
		dst = appendInt(dst, a.RunMs)
		dst = appendEndedFacts(appendString(dst, a.Detail), a)
	}
	return dst
}

func appendDecline(dst []byte, b *Decline) []byte {
	dst = appendAttempts(dst, b.Attempts)
	dst = appendString(dst, b.Reason)
	flags := uint64(0)
	if b.Offer != nil {
		flags |= declineOffers
	}
	if b.Unopened {
		flags |= declineUnopened
	}
	dst = protowire.AppendVarint(dst, flags)
	if b.Offer != nil {
		dst = appendOffer(dst, b.Offer)
	}
	return dst
}

func appendUsage(dst []byte, b *Usage) []byte {
	dst = protowire.AppendVarint(dst, b.Batch)
	dst = appendLen(dst, len(b.Rows))
	for i := range b.Rows {
		r := &b.Rows[i]
		dst = protowire.AppendVarint(dst, r.Job)
		dst = protowire.AppendVarint(dst, uint64(r.Task))
		dst = appendResources(dst, r.Need)
		dst = appendInt(dst, r.AgoMs)
		dst = appendInt(dst, r.RunMs)
		dst = appendInt(dst, r.WaitMs)
	}
	return dst
}

func appendAttempts(dst []byte, refs []AttemptRef) []byte {
	dst = appendLen(dst, len(refs))
	for i := range refs {
		dst = appendAttempt(dst, &refs[i])
	}
	return dst
}

func appendAttempt(dst []byte, a *AttemptRef) []byte {
	dst = appendJobID(dst, a.Job)
	dst = protowire.AppendVarint(dst, uint64(a.Task))
	dst = protowire.AppendVarint(dst, uint64(a.Attempt))
	return protowire.AppendVarint(dst, a.Token)
}

func appendJobID(dst []byte, id JobID) []byte {
	return protowire.AppendVarint(appendString(dst, id.Site), id.Num)
}

func appendResources(dst []byte, r Resources) []byte {
	return appendInt(appendInt(appendInt(dst, r.MilliCPU), r.MemMiB), r.GPU)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = appendLen(dst, len(list))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

func appendString(dst []byte, s string) []byte { return protowire.AppendString(dst, s) }

func appendLen(dst []byte, n int) []byte { return protowire.AppendVarint(dst, uint64(n)) }

// appendInt writes a number that is never negative; the reader would refuse a negative one.
func appendInt(dst []byte, v int64) []byte { return protowire.AppendVarint(dst, uint64(v)) }

func appendSigned(dst []byte, v int64) []byte {
	return protowire.AppendVarint(dst, protowire.EncodeZigZag(v))
}

func appendBool(dst []byte, v bool) []byte {
	return protowire.AppendVarint(dst, protowire.EncodeBool(v))
}
