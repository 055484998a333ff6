package core

import "github.com/cloudshare/cloudshare/fsm/command"

// ClosedWhy returns why the site offers nothing, and what its broker knows beyond that,
// in words; "" if there is no more to say.
func (c *Core) ClosedWhy() (why command.Closure, words string) {
	switch why = c.lend.Closure(); why {
	case command.ClosedDisk:
		return why, c.lend.Full().Error()
	case command.ClosedDiffers:
		return why, c.lend.Unsure()
	case command.ClosedTrouble:
		return why, "machine " + c.troubles.Of("", c.now.Boot)
	default:
		return why, ""
	}
}

// Outlook is what would become of a job at its own site, were it submitted now.
type Outlook struct {
	Alone  bool // the site has lost touch with the quorum
	Waits  bool // alone, it would wait at home
	Starts bool // there is room at home, and nothing waits there
	Idle   bool // nothing of the site is on its way to the federation
}

// Outlook looks ahead for a job, and takes nothing.
func (c *Core) Outlook(js *command.JobSpec) Outlook {
	return Outlook{
		Alone: c.Alone(), Waits: !js.Gated && c.homeAlone(js), Idle: c.pubs.Idle(),
		Starts: !js.Gated && js.Allows(c.site) &&
			c.home.Waiting() == 0 && !c.homePaused() && c.machines.Place(js) != nil,
	}
}
