package quotas

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

// userRecord is what the journal holds of a user, or of everybody.
type userRecord struct {
	Limits *node.UserLimits `json:"limits,omitempty"`
	// MilliSeconds of cores, as they were At, in unix milliseconds.
	MilliSeconds uint64 `json:"milli_seconds,omitempty"`
	At           int64  `json:"at,omitempty"`
}

// WriteUser has a user's limits written, or everybody's.
func (b *Book) WriteUser(name string, writes *[]record.Write) {
	if name == node.EveryUser {
		if b.every.command == nil {
			*writes = append(*writes, record.Remove(record.BucketQuotas, []byte(name)))
			return
		}
		all := *b.every.command
		*writes = append(*writes, record.PutRecord(record.BucketQuotas, []byte(name), userRecord{Limits: &all}))
		return
	}
	u := b.users[name]
	u.unwritten = false
	if u.limits == nil && u.use.milliSeconds == 0 {
		*writes = append(*writes, record.Remove(record.BucketQuotas, []byte(name)))
		return
	}
	r := userRecord{MilliSeconds: u.use.milliSeconds, At: u.use.at}
	if u.limits != nil {
		l := *u.limits
		r.Limits = &l
	}
	*writes = append(*writes, record.PutRecord(record.BucketQuotas, []byte(name), r))
}

// Write has all users written of whom something has changed since.
func (b *Book) Write(writes *[]record.Write) {
	for name, u := range b.users {
		if u.unwritten {
			b.WriteUser(name, writes)
		}
	}
	b.tidy()
}

// Recover reads what earlier runs of the broker have written.
func (b *Book) Recover(j record.Reader) error {
	return j.Each(record.BucketQuotas, func(k, v []byte) error {
		var r userRecord
		if err := json.Unmarshal(v, &r); err != nil {
			return fmt.Errorf("quotas of user %q: %w: run the version that wrote them", k, err)
		}
		if name := string(k); name != node.EveryUser {
			u := b.user(name)
			u.limits, u.use = r.Limits, use{r.MilliSeconds, r.At}
		} else {
			b.every.command = r.Limits
		}
		return nil
	})
}
