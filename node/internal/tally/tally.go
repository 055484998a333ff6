// Package tally counts things by the user whose they are, for bounds on what one user may have of a whole. It imports
// nothing of ours.
package tally

// Amount is what is counted. Its zero value is nothing.
type Amount[A any] interface {
	comparable
	// Plus returns it with another one added, or taken away if sign is −1.
	Plus(other A, sign int) A
}

// Count is the Amount of things that are only counted.
type Count int

// Plus implements Amount.
func (c Count) Plus(other Count, sign int) Count { return c + Count(sign)*other }

// ByUser has amounts by user and their sum; "" is a user, too. The zero value has none. It is not safe for concurrent
// use.
type ByUser[A Amount[A]] struct {
	amounts map[string]A // Invariant: none is nothing
	sum     A
}

// Add counts something of a user's, or takes it away if sign is −1.
func (t *ByUser[A]) Add(user string, a A, sign int) {
	t.sum = t.sum.Plus(a, sign)
	if t.amounts == nil {
		t.amounts = map[string]A{}
	}
	var nothing A
	if t.amounts[user] = t.amounts[user].Plus(a, sign); t.amounts[user] == nothing {
		delete(t.amounts, user)
	}
}

// Of returns the amount of a user.
func (t *ByUser[A]) Of(user string) A { return t.amounts[user] }

// Sum returns that of all users.
func (t *ByUser[A]) Sum() A { return t.sum }
