// Package record is what a broker must not forget: the buckets of its journal, the keys of
// their records, and the writes of which a turn of the core is made.
//
//	core ──[Write]s──▶ broker ──[Journal]: one sync for all that waits──▶ node/journal
//	core ◀──[Reader]── what earlier lives of the broker have recorded
//
// The core (node/core) only makes writes and reads through [Reader]; the shell (node/broker)
// opens and commits the [Journal]. That these stand in one package, beside the engine in
// node/journal, lets the core's tests crash a real journal. It imports nothing of the broker.
package record
