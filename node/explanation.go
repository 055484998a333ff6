package node

import (
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Why says why a job waits, or what would become of one that is only asked about.
type Why struct {
	Job     command.JobID // Num is 0 for a job that is only asked about
	State   string        // of the job
	Waiting uint32        // tasks
	// User is whose the job is, and CancelledBy who had it cancelled; "" where that is not known, or not told.
	User, CancelledBy string
	// Priority of the job, among those of its owner.
	Priority int32
	// Notices of the job's end that were not delivered: its owner's broker knows them.
	Notices []Notice
	Summary string // all of it in one line
	// View are the facts of the federation's queue, nil if nothing of the job
	// waits there.
	View  *fsm.WhyView
	Turn  string // who goes first, and by how much; "" if no site can run it
	Sites []SiteReason
	// Estimate is of the next task's start.
	Estimate    Estimate
	Calibration Calibration
}

// SiteReason is a site's hindrance in words.
type SiteReason struct {
	fsm.SiteWhy
	Text string
}
