// Package stagein brings the files of tasks here before they begin (step 6 of a job's way): those of other sites' jobs
// from their owners' brokers into the cache of the site's store, pinned by the attempt; those of its own jobs are in
// the store already. It knows neither the loop nor handlers, and starts nothing.
package stagein
