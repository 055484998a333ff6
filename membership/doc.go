// Package membership is who is there: the hints of step 8 of a job's way, by
// gossip among the brokers on hashicorp/memberlist.
//
// A hint has the leader dial a site. It never requeues anything: what the
// leader finds does, or an expired lease, and only the log says so. Gossip is
// never trusted for identity either: a member is what it says it is.
//
//	Join func ─▶ rejoin ─▶ memberlist ─▶ delegate ─▶ table ─▶ pump ─▶ Events
//	              (loop)     │     ▲     (filters)   (pure)   (loop)   Members
//	                         ▼     │
//	                        transport: one port, TCP and UDP; refuses junk
//
// The table (table.go) holds what each site says and how memberlist sees it;
// the delegate (delegate.go) refuses what is malformed before memberlist keeps
// it; the transport (transport.go, stream.go) refuses what is not gossip of
// this federation before memberlist reads it; rejoining (rejoin.go) heals what
// memberlist does not. The package imports nothing of CloudShare.
package membership
