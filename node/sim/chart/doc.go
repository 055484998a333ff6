// Package chart draws what the simulator played, as SVG or PNG: [Gantt] draws one run, and
// [New] begins a drawing of rectangles, lines and text for others. It looks on from outside
// a job's way. The same calls give the same bytes.
package chart
