// Package explain puts facts of the federation's queue into sentences: why a job waits, whose
// turn it is and by how much, and what keeps each site from running it.
//
//	fsm.WhyView  what the state says     ┐
//	SiteReports  what sites have said    ├──Fill──▶ node.Why: a line, whose turn, each site
//	node.Freshness  how old that may be  ┘
//
// It is a leaf of pure functions: it asks nobody, and never imports the core or the broker.
package explain
