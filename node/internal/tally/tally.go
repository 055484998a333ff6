// Package tally counts things by the user whose they are, for bounds on what one user may have of a whole. It imports
// nothing of ours.
package tally

// ByUser has amounts by user and their sum; "" is a user, too. The zero value has none. It is not safe for concurrent
// use.
type ByUser[N int | int64] struct {
	amounts map[string]N // Invariant: none is 0
	sum     N
}

// Add changes the amount of a user, by less than nothing too.
func (t *ByUser[N]) Add(user string, n N) {
	t.sum += n
	if t.amounts == nil {
		t.amounts = map[string]N{}
	}
	if t.amounts[user] += n; t.amounts[user] == 0 {
		delete(t.amounts, user)
	}
}

// Of returns the amount of a user.
func (t *ByUser[N]) Of(user string) N { return t.amounts[user] }

// Sum returns that of all users.
func (t *ByUser[N]) Sum() N { return t.sum }
