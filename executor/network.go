package executor

// Network is what tasks reach beyond a loopback of their own. More reaches further.
type Network uint8

// The networks. The zero value is none.
const (
	NetworkNone     Network = iota // a loopback of their own at most
	NetworkOutbound                // out to the world, but neither the machine nor other tasks
	NetworkHost                    // the machine's, with all that it reaches
)

// networkNames are the words of a site's configuration.
var networkNames = [...]string{NetworkNone: "none", NetworkOutbound: "outbound", NetworkHost: "host"}

// String returns the configuration's word.
func (n Network) String() string { return networkNames[n] }

// Of returns what a task has at a site that gives other sites' tasks n: the site's own have
// the machine's.
func (n Network) Of(t Task, site string) Network {
	if t.Owner == site {
		return NetworkHost
	}
	return n.For(t)
}

// ParseNetwork reads what String wrote.
func ParseNetwork(word string) (n Network, ok bool) {
	for i, name := range networkNames {
		if name == word {
			return Network(i), true
		}
	}
	return NetworkNone, false
}

// For returns what a task of another site gets of a handler that gives such
// tasks n: what its job does not ask for it does not get.
func (n Network) For(t Task) Network {
	if !t.Network {
		return NetworkNone
	}
	return n
}
