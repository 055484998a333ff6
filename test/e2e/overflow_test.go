package e2e

import "testing"

// TestBagOverflowsToAllSites submits more tasks at one site than the whole
// federation has cores.
func TestBagOverflowsToAllSites(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 2)
	home := fed.Sites[0]
	bag := newGated(t)
	a := submit(t, home, bag.spec(12))

	// Every core of every site is at work, and only those.
	tasks := awaitRunning(t, home, a.ID, 6)
	for _, s := range fed.Sites {
		if n := sitesOf(tasks)[s.Name]; n != 2 {
			t.Errorf("%s runs %d tasks, want 2 (its cores)", s.Name, n)
		}
	}

	bag.open(t)
	awaitEnd(t, home, a.ID)
	bag.onceEach(t, 12)
	agree(t, fed)

	// Who ran for another has given, and who had others run has used.
	ledger, err := home.Ledger(within(t))
	must(t, err)
	for _, acc := range ledger.Sites {
		owes := acc.Priority[0] == '-'
		if owes != (acc.Site == home.Name) || acc.Priority == "0" {
			t.Errorf("priority of %s is %s", acc.Site, acc.Priority)
		}
	}
}
