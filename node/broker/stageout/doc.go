// Package stageout keeps what tasks leave (step 7 of a job's way): it collects the outputs of ended attempts into the
// site's store and gives those of other sites' tasks to their owners, for as long as these want them. It knows neither
// the core nor what runs tasks, but for the handlers' contract.
package stageout
