// Package whose knows which user of its own site a job is of: what lets users see and end their own jobs and nobody
// else's. A broker's core notes it in the journal together with the job; it never leaves the site, neither in commands
// nor in what other brokers are answered.
//
// A job that is in no [Book] is the site's own: who submitted it named no user. It imports no broker and no core.
package whose
