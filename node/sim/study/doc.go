// Package study is the paper's evaluation (Table 1) and what goes beyond it: it plays many
// instances of real workloads with [sim] and compares the policies that played them. It
// looks on from outside a job's way.
//
//	logs ─▶ Study.Run ─▶ Rows (one per instance, kept in Results) ─▶ Report: Markdown, CSV, chart
//	     └▶ Study.Incentives ─▶ Gains of lies          └▶ Series: ranges over logs and seeds
//
// The same study gives the same rows and the same bytes of its report, on any number of
// workers.
package study
