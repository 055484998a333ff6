package core

import (
	"github.com/cloudshare/cloudshare/fsm"
)

// Set has parameters ordered; false: too many changes wait already.
func (c *Core) Set(p fsm.Params, done chan<- fsm.Code) bool {
	if c.settings >= MaxSettings {
		return false
	}
	c.settings++
	c.out.add(&fsm.SetParams{Params: p}, func(r fsm.Result, _ StateReader, _ *Effects) {
		c.settings--
		done <- r.Code
	})
	return true
}
