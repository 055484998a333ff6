// Package estimate learns from the federation's events when waiting jobs start, and says it
// of one that waits.
//
//	events ──Observe──▶ Estimator ◀──Sample── the state, once a second
//	fsm.WhyView ──Estimate──▶ node.Estimate: even odds, nine of ten, or why there is none
//
// The method, its assumptions and its limits are in ESTIMATE.md. All of it is
// one broker's own and bounded, and nothing is decided by it. It is a leaf: it never imports
// the core or the broker.
package estimate
