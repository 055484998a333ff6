package node

import (
	"fmt"
)

// ParamError names the parameter that cannot be set, as the API spells it.
type ParamError struct {
	Field, Value string
	Why          string // what it must be
}

// Error implements error.
func (e *ParamError) Error() string {
	return fmt.Sprintf("%s: %s %s (got %s)", ErrBadParams, e.Field, e.Why, e.Value)
}

// Unwrap has every ParamError be ErrBadParams.
func (*ParamError) Unwrap() error { return ErrBadParams }
