// Package askkeys has a broker ask another site's for the keys of sealed payloads, over connections of relay.KindKeys:
// between steps 5 and 6 of a job's way. Only the bytes are here; who gets a key is the broker's to say
// (node/core/unseal).
//
//	question: entry · n · n × (job number · task · attempt · token)
//	answer:   n · n × (refusal · key, if granted)
//
// A connection takes questions one after the other. The jobs are those of the site that is asked; who asks is whose key
// has opened the connection. Both sides bound what they read. The package imports relay, and neither a backend nor the
// broker.
package askkeys
