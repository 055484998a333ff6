// Package roster is who the members of a federation are, by their keys, and what the electors among them decide.
//
//	founder ── Invite(lab-2) ──▶ invitation, motion 1      every elector: Vote(1, yes)
//	lab-2 ── Admit(by the invitation's secret) ──▶ claimed  more than half agree ──▶ member lab-2
//
// It is a part of the replicated state: it sees no clock, no randomness and no map's order, and the same commands
// give the same roster everywhere. The [State] of package fsm calls it and does what a decision means for machines
// and jobs. DESIGN.md says why it is so.
package roster
