package command

import "fmt"

// ID identifies a command forever: its site, that site's incarnation, and a sequence number that starts
// at 1 in each incarnation. A repeat of an id within the window returns the old result; an id below the
// floor is Stale.
type ID struct {
	Site        string
	Incarnation uint64
	Seq         uint64
}

// Command is one proposal of one site.
type Command struct {
	ID ID
	// Ack raises the site's floor: the site has received the results of all its sequence numbers
	// ≤ Ack. Seq > Ack, and Seq ≤ Ack+Window.
	Ack  uint64
	Body Body
}

// Window is how many results the state keeps per site: a site has at most this many commands in
// progress.
const Window = 1024

// Batch is one entry of the total order, stamped by the leader (architecture D3).
type Batch struct {
	// Term is that of the leader that stamped the batch; it grows with every change of leader.
	Term uint64
	// Elapsed is in milliseconds on the leader's monotonic clock since its first entry of Term. State
	// time = time at the term's start + Elapsed; it never goes backwards and moves at most MaxStep
	// ahead in one entry.
	Elapsed  int64
	Commands []Command // empty: an idle tick
	// Bundles say who signed which of the commands: each those behind the one before, together all of them. None: the
	// commands are not signed, as where the federation has no roster.
	Bundles []Bundle
}

// MaxStep is how far one entry may move the log's time, in milliseconds.
const MaxStep = 60_000

// Body is a command's content; its concrete type gives the kind.
type Body interface{ Kind() Kind }

// Validate checks everything that a command may hold. A command that passes takes at most MaxCommand
// bytes when encoded, and Decode accepts it.
func (c *Command) Validate() error {
	if err := inSite("command's site", c.ID.Site); err != nil {
		return err
	}
	if v, ok := c.Body.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return fmt.Errorf("%w: a command has no body that can be encoded: %T", ErrOutOfBounds, c.Body)
}

// Unreadable stands for what an entry holds and this version cannot read. Nobody can propose it, and it is refused.
type Unreadable struct{}

// Kind implements Body: it has none.
func (Unreadable) Kind() Kind { return 0 }

// Validate refuses it.
func (Unreadable) Validate() error {
	return fmt.Errorf("%w: the command cannot be read", ErrOutOfBounds)
}
