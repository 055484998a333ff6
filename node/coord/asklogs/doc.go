// Package asklogs has an owner's broker ask another site's for what attempts of its jobs have written there, over
// connections of relay.KindLogs: behind step 8 of a job's way, when they have ended. Only the bytes are here; what is
// given is the broker's to say, and what becomes of it, too (node/broker/homelogs).
//
//	question: bound of a stream · n · n × (job number · task · attempt, 0 = its newest)
//	answer:   for each, in order: whole · attempt · token · stdout · stderr
//	          or any number of: piece · stream · bytes; then end · attempt · token
//	          or, also behind pieces: refused · why
//
// A connection takes questions one after the other. The jobs are those of the site that asks, which is whose key has
// opened the connection: nobody can ask for another one's. Both sides bound what they read and hold. The package
// imports relay, and neither a backend nor the broker.
package asklogs
