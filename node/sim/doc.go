// Package sim plays workloads through the product's own code: the broker core
// (core.Driver), the order in memory (coord/mem), the state machine (fsm) and its
// policies (sched), on a virtual clock and with virtual machines. So that anyone
// can check on real workloads what "fair" means here.
//
//	swf log ─▶ Workload ─▶ Instance (period, users → sites, cores) ─▶ Run ─▶ waits
//	                           └─ 2^N − 1 coalitions ─▶ v(S) ─▶ φ ─▶ unfairness, scores
//
// A [Case] is what one run plays, [Play] plays it with brokers, [TotalWait] gives
// the same total by counting where theory says that it must be the same.
// The evaluation of the paper (Table 1) is package study, drawings are package chart.
//
// The package imports no other backend of coordination, no handler and no network.
package sim
