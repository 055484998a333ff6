package homelogs

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/replica"
)

// Store is the site's store of outputs. It has those of its own machines, too.
type Store interface {
	// Put keeps outputs, and takes their files over. When it returns nil they are on the disk.
	Put(list []Output) error
	// Find returns the full id of an attempt whose output is kept, as [executor.Finder].
	Find(job string, task, attempt uint32) (executor.ID, error)
	// FindNewest returns the newest attempt of a task whose output is kept.
	FindNewest(job string, task uint32) executor.Newest
	// Removed returns why an attempt's output was removed, as [executor.OutputHistory].
	Removed(job string, task, attempt uint32) (executor.OutputRemoval, bool)
	// Open opens a stream of an attempt.
	Open(id executor.ID, stream int) (io.ReadSeekCloser, error)
}

// Output is what an attempt has written.
type Output struct {
	ID      executor.ID
	At      time.Time // when it came
	Streams [2]Stream // stdout, stderr
}

// Stream is one output: Text, or a file of its own.
type Stream struct {
	Text []byte
	Path string
	Size int64 // of the file
}

// Config is how outputs come home.
type Config struct {
	// Store is where they go.
	Store Store
	// Dir holds large streams as they come. It is on the store's file system, and nobody else's.
	Dir string
	// Most bounds each stream of an attempt, in bytes; what is beyond is left out.
	Most int64
	// Inline is the largest stream that the store takes as text.
	Inline int
	// Keep is how long outputs stay: what has ended longer ago is not asked for.
	Keep time.Duration
	// Dial connects to a site's broker at its peer address by relay.KindLogs, and fails if anybody else answers there.
	Dial func(ctx context.Context, site, addr string) (net.Conn, error)
}

// Around is what a puller reads of its broker.
type Around struct {
	Site    string
	Source  Source
	Events  func(from node.EventID, filter node.EventFilter) *replica.Subscription
	Now     func() node.EventID // the feed's place
	Current <-chan struct{}     // closed once the state was rebuilt since the start
	Full    func() error        // why nothing may be written now, or nil
	Logger  zerolog.Logger
}

// Source is the state of the federation, as far as it says where outputs are.
type Source interface {
	// Sites are all other sites that may run something.
	Sites() []string
	// Address is a site's peer address, "" = it has none.
	Address(site string) string
	// Jobs lists some of this site's jobs, and the place to go on from, 0 behind the last; it begins at 0.
	Jobs(before uint64) (jobs []Job, next uint64)
	// Ended lists some of a job's ended tasks, and the place to go on from, 0 behind the last; it begins at 0.
	Ended(id command.JobID, from uint32) (tasks []Task, next uint32)
	// Position returns the number at the handlers of the task of an index.
	Position(id command.JobID, index uint32) uint32
}

// Job is a job of this site.
type Job struct {
	ID      command.JobID
	EndedAt time.Time // zero: it has not ended
	Allows  func(site string) bool
}

// Task is a task that has ended.
type Task struct {
	Position uint32
	// Site ran its last attempt, "" = the state does not say: any may have.
	Site    string
	Attempt uint32 // 0 = the state does not say
	Token   uint64
	EndedAt time.Time // zero: the state does not say
}
