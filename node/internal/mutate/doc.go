// Package mutate is the hook of the mutation checks in test/chaos: a build with the tag
// "mutate" can work without single safeguards, to show that a check notices. It imports
// nothing of the broker.
package mutate
