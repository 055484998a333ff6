// Package replica is a site's copy of the replicated state (step 5 of a job's way), and what
// is made of its entries for those who read:
//
//	coord ──entries──▶ Replica ──┬─▶ fsm.State      View, Await: the present
//	                             ├─▶ Feed           Subscription, Latest: what happened
//	                             ├─▶ dates          log time as dates for people
//	                             ├─▶ checkpoints    hashes, compared with other replicas
//	                             └─▶ History        the entries, for those who go through them again
//
// The coordination backend writes, through the interfaces of node/coord that [Replica]
// implements; everybody else reads copies. The package decides nothing and never imports the
// core or the broker.
package replica
