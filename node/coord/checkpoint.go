package coord

import "time"

// MaxCheckpoints bounds what a [Checkpointed] machine remembers.
const MaxCheckpoints = 48

// Checkpoint is what a machine remembers of the moment right after one entry.
type Checkpoint struct {
	Entry uint64
	// Chain is the head of a hash chain over all entries up to this one: the same only if
	// they are the same, in the same order.
	Chain [32]byte
	// Hash is of the state, if Hashed: that costs too much to be done each time.
	Hash   [32]byte
	Hashed bool
}

// Contradicts reports whether two checkpoints cannot both be of one history: both are of
// one entry, and what they have of it differs. Their hashes must be of one format.
func (c Checkpoint) Contradicts(o Checkpoint) bool {
	return c.Entry == o.Entry && (c.Chain != o.Chain || c.Hashed && o.Hashed && c.Hash != o.Hash)
}

// Checkpointed is a [Machine] that remembers checkpoints. Members choose the entries
// alike, from replicated data only, so that they can compare.
type Checkpointed interface {
	// HashFormat names what the hashes are taken over. Hashes of two formats say
	// nothing of each other.
	HashFormat() string
	// Checkpoints returns what is remembered by growing entry numbers, at most
	// MaxCheckpoints of one state: none of before the last Restore.
	Checkpoints() []Checkpoint
	// Held returns the state of the newest hashed checkpoint if that is young, else the
	// present one, with its entry number.
	Held() (entry uint64, s Snapshot)
	// PeerAddress returns the peer address that the state has of a site, "" if none.
	PeerAddress(site string) string
}

// Comparing is a [Log] whose members compare their states.
type Comparing interface {
	// Compared returns what the comparisons have found so far; it never blocks.
	Compared() Comparison
}

// Comparison is what a member knows of the other members' states.
type Comparison struct {
	// Entry is the newest at which another member's state was compared, 0 = none.
	Entry uint64
	// Same are the sites that had the same state there, sorted.
	Same []string
	// Differ are the sites whose history or state differed when it was compared last, with
	// the entry at which it did.
	Differ map[string]uint64
	// Liars are the sites of which it is proven that they have signed two different histories
	// or states of one entry, with that entry.
	Liars map[string]uint64
	// Unsure says why this member must begin no work of other sites now, in words; "" = it may:
	// none differs, or most of the voters have what it has.
	Unsure string
	// At is when states of a newer entry than before were compared last, zero = never; Alone says that there is nobody
	// to compare with.
	At    time.Time
	Alone bool
}
