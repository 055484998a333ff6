package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// NetworkSpec is a network of the engine's to make; the fields are its own.
type NetworkSpec struct {
	Name   string
	Driver string            // bridge
	Labels map[string]string `json:",omitempty"`
	// CheckDuplicate has Docker refuse a second one of the name.
	CheckDuplicate bool
}

// MakeNetwork makes a network, unless there is one of its name.
func (c *Client) MakeNetwork(ctx context.Context, spec NetworkSpec) error {
	err := c.call(ctx, http.MethodGet, "/networks/"+spec.Name, nil, nil, nil)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	spec.CheckDuplicate = true
	err = c.call(ctx, http.MethodPost, "/networks/create", nil, spec, nil)
	if err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("make network %s: %w", spec.Name, err)
	}
	return nil
}
