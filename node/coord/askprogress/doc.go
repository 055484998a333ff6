// Package askprogress has an owner's broker ask another site's what attempts of its jobs do there before they start, as
// bringing their files, over connections of relay.KindProgress: beside step 6 of a job's way, when somebody looks at a
// task. No entry of the log tells of it. Only the bytes are here; when to ask, and what may be told, is the broker's to
// say (node/broker/query).
//
//	question: n · n × (job number · task · attempt · token)
//	answer:   n × (length · text), in the order of the question; no text = nothing is known
//
// A connection takes questions one after the other. The jobs are those of the site that asks, which is whose key has
// opened the connection: nobody can ask for another one's. Both sides bound what they read and hold, and a text that
// people could not read is refused. The package imports relay, and neither a backend nor the broker.
package askprogress
