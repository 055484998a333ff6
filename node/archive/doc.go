// Package archive keeps what became of attempts longer than the replicated state
// does: step 7 of a job's way, afterwards.
//
// A [Collector] reads a broker's events. It hands them to an [Archive], which
// writes the ended attempts of its scope to segments on disk, and to [Recent],
// which holds the attempts of all sites of the last hours, and the ledger's
// course, in memory. Reports and exports read the archive.
//
// The package decides nothing: no broker reads it to run a job. It must never
// import api, cmd, a coordination backend or a handler.
package archive
