// Package truststore is what a broker knows of who is who: the keys by which it takes connections and opens them.
//
//	replicated state ── Update ──▶ Store ── Find(key), Key(site) ──▶ the peer port (package relay)
//	                                │
//	                                └─ the file roster in data_dir, for the next start
//
// The federation's roster (package fsm/roster) is the truth. The store keeps the newest one that this broker has seen,
// because a broker that starts must know whom to believe before anybody tells it what happened meanwhile.
package truststore
