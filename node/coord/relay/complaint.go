package relay

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// complaint is why a call was not taken for this member's. It is sent again all the same: a leader may have said so, or
// changed a byte, for reasons of its own, or the site's key has just been replaced.
type complaint uint8

const (
	rejectedCall complaint = iota // by the leader
	unsignedCall                  // by the state
	complaintKinds
)

var complaintTexts = [complaintKinds]string{
	rejectedCall: "the leader cannot read it, or takes it for another site's: compare the versions of the brokers, and the " +
		"site's key with cloudshare members",
	unsignedCall: "it is not signed with the key that the federation knows of this site (cloudshare members), or the leader " +
		"changed it",
}

// complaints are those that people are still to be told of, the newest call of each kind. They are made where nothing
// may be logged, since the machine's lock is held.
type complaints struct {
	mu        sync.Mutex
	calls     [complaintKinds]*proposal
	reminders [complaintKinds]Reminder
}

func (c *complaints) add(why complaint, of *proposal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[why] = of
}

// tell logs what has come, seldom.
func (c *complaints) tell(log *zerolog.Logger, now time.Time) {
	c.mu.Lock()
	calls := c.calls
	clear(c.calls[:])
	var due [complaintKinds]bool
	for why, of := range calls {
		r := &c.reminders[why]
		r.Every = RemindEvery
		due[why] = of != nil && r.Due(complaintTexts[why], now)
	}
	c.mu.Unlock()
	for why, of := range calls {
		if due[why] {
			log.Warn().Str("call", name(of.ids)).Str("because", complaintTexts[why]).
				Msg("a command was refused, and is proposed again")
		}
	}
}
