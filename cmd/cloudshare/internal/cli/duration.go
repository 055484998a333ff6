package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/node/jobspec"
)

// DurationVar defines a flag that says how long, read by jobspec.ParseDuration.
func DurationVar(f *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	f.Var((*durationFlag)(to), name, usage)
}

type durationFlag time.Duration

// Set implements pflag.Value.
func (d *durationFlag) Set(text string) error {
	v, err := jobspec.ParseDuration(text)
	if err == nil {
		*d = durationFlag(v)
	}
	return err
}

// String implements pflag.Value. Help shows no default of 0.
func (d *durationFlag) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// Type implements pflag.Value.
func (*durationFlag) Type() string { return "duration" }
