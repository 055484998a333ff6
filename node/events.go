package node

import (
	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// event is something that happened to this broker.
type event interface{ isEvent() }

// submitEvent: users of this site submit jobs (the paper's event 1). reply is
// called once per request, from the shell, after what it acknowledges is durable.
type submitEvent struct {
	reqs []Request
	// full, if set, is why no new job is taken; repeats are answered.
	full  error
	reply func(i int, a Answer)
}

// stateEvent: the replicated state changed (event 2, and 5).
type stateEvent struct{}

// capacityEvent: a handler's machines changed (event 3).
type capacityEvent struct {
	handler  string
	machines []executor.Machine
}

// acceptedEvent: a handler took an attempt.
type acceptedEvent struct{ id executor.ID }

// unstoppedEvent: a handler could not stop an attempt.
type unstoppedEvent struct{ id executor.ID }

// startedEvent: an attempt's process runs.
type startedEvent struct{ id executor.ID }

// endedEvent: an attempt ended (event 4).
type endedEvent struct {
	id     executor.ID
	result executor.Result
}

// refusedEvent: a handler did not take an attempt.
type refusedEvent struct {
	id  executor.ID
	err error
}

// resultEvent: commands were executed, or never will be (err).
type resultEvent struct {
	cmds    []fsm.Command
	results []fsm.Result
	err     error
}

// cancelEvent: the owner cancels one of its jobs, or tasks of it.
type cancelEvent struct {
	num uint64
	// tasks are the only ones to end, if there are some.
	tasks Indices
	// at is the site whose broker was asked; empty: this one's.
	at    string
	reply func(error)
}

// registeredEvent: the federation knows this start of the broker.
type registeredEvent struct {
	result fsm.Result
	boot   [16]byte
}

// tickEvent: some time passed.
type tickEvent struct{}

// askEvent reads or changes the core on its own goroutine.
type askEvent func(*core)

func (submitEvent) isEvent()     {}
func (stateEvent) isEvent()      {}
func (capacityEvent) isEvent()   {}
func (acceptedEvent) isEvent()   {}
func (unstoppedEvent) isEvent()  {}
func (startedEvent) isEvent()    {}
func (endedEvent) isEvent()      {}
func (refusedEvent) isEvent()    {}
func (resultEvent) isEvent()     {}
func (cancelEvent) isEvent()     {}
func (registeredEvent) isEvent() {}
func (tickEvent) isEvent()       {}
func (askEvent) isEvent()        {}
