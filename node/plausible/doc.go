// Package plausible watches what sites report and nobody can prove: how long they ran other sites' tasks, and what
// they lend.
//
//	events ──Observe──▶ Watch ◀──Sample── the state, once a second
//	                      └──▶ node.Plausibility: figures by site, and sentences on what stands out
//
// Every broker sees the same events and computes it for itself, from what it has seen since its start. Nothing is
// decided by it; DESIGN.md has the method and what it cannot show. It is pure (no clock, no input or output), bounded,
// and a leaf: it never imports the core or the broker.
package plausible
