package core

import (
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Set has parameters ordered; false: too many changes wait already.
func (c *Core) Set(p command.Params, done chan<- command.Code) bool {
	if c.settings >= MaxSettings {
		return false
	}
	c.settings++
	c.out.add(&command.SetParams{Params: p}, func(r command.Result, _ StateReader, _ *Effects) {
		c.settings--
		done <- r.Code
	})
	return true
}
