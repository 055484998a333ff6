package sched

// Int128 is a signed 128-bit integer.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Account is one site's standing: everything a policy may look at.
type Account struct{}
