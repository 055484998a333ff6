// Package attacks plays outsiders and hostile members against a federation of real brokers. Each attack is a test of
// its own, and each of them must be refused: afterwards the members, the motions and the policy are as before, a job
// runs, and all brokers have the same state.
//
// The tests need the build tag attacks and openssl: make test-attacks.
// What a hostile leader does, and what of it is refused, alarmed or neither, is in DESIGN.md. Attacks that nothing
// refuses yet (a voter that disturbs elections) are not here; the threat model in the guide names them.
package attacks
