// Package enroll is how somebody who is no member yet is admitted: one question over the peer port, one answer.
//
//	new site ── key, Admit signed by the invitation and by the key ──▶ the member that invited it (its key is in the text)
//	         ◀── admitted: who the members are │ pending: who must approve │ refused: why, and what to do
//
// A member whose key was lost asks in the same way for another one ([command.Rekey]). Both carry their own proof, so
// whoever answers only passes them on. The package knows no backend: the daemon gives it what it needs of the broker.
package enroll
