// Package facade is what a broker sees of its member of the group, whatever keeps the
// log: how it is configured, opened, asked and closed. Step 3 of a job's way.
//
// A backend's Log embeds a Member and adds what differs: where entries stand, who
// leads, and how members come and go. A member lives like this:
//
//  1. New, Claim: nobody else has the data folder, and no stop for a differing state stands.
//  2. Listen: the peer port is bound; what the backend handles there is its own.
//  3. Identify, Bind: the group is known, and calls go to its leader (package relay).
//  4. Compare: states are compared with other members' (package compare).
//  5. Shut, which calls Stop: everything ends, in one order for all backends.
//
// The package imports no backend.
package facade
