// Package transfer moves blobs between brokers, over connections of relay.KindFiles: executors pull the inputs of the
// attempts that they begin, owners the outputs of those that have ended. Only the bytes are here: who may read what is
// for Server.Answer to say, and whether a whole blob has its hash for the store.
//
//	request: entry · n · n × (attempt, or that of the part before · what · hash · size · offset · length)
//	answer:  for each part, frames of a chunk each: raw or zstd · bytes; or refused · why, which ends the part
//
// A connection takes requests one after the other, and the next one may be on its way before the answer has come. Both
// sides bound what they read and hold. The package imports relay and the commands' ids, and neither a backend, a store
// nor the broker.
package transfer
