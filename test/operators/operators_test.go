//go:build operators

package operators

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// where prints the namespace in which it runs.
const where = "readlink /proc/self/ns/net"

// TestOperators: two operators found a federation and let a third one in, lend each other their machines, get a site
// back whose disk is lost, expel a member and take that back. They share no machine and no file, and type commands.
func TestOperators(t *testing.T) {
	all := machines(t, "lab-a", "lab-b", "lab-c")
	a, b, c := all[0], all[1], all[2]

	a.starts("--bootstrap")
	a.sees("cloudshare sites", `lab-a +alive`)
	secondJoins(a, b)
	thirdJoins(a, b, c)
	lend(a, b)
	comeBack(a, b)
	expel(a, b, c)
	takeBack(a, b, c)
}

// secondJoins has the founder alone let a site in.
func secondJoins(a, b *operator) {
	a.types("cloudshare invite lab-b --out b.token", `lab-b may join until .*, once`)
	a.hands("b.token", b)
	b.starts("--join @b.token")
	for _, o := range []*operator{a, b} {
		o.sees("cloudshare sites", `lab-a +alive`, `lab-b +alive`)
	}
}

// thirdJoins has two decide, who compare the key that was shown with the one that the new site's operator sees.
func thirdJoins(a, b, c *operator) {
	a.types("cloudshare invite lab-c --out c.token", `It is admitted once lab-b has approved: cloudshare approve lab-c, there`)
	a.hands("c.token", c)
	c.starts("--join @c.token")
	c.sees("cat broker.log", `not admitted yet.*waiting for the approval of lab-b`)
	key := regexp.MustCompile(`csk_\w+`).FindString(c.types("cloudshare key show --data-dir data", `csk_`))
	a.sees("cloudshare invitations", `lab-c +lab-a +yes +claimed`, `lab-c shows the key `+key)
	b.types("cloudshare motions", `admit lab-c +lab-a +open`, `lab-c shows the key `+key)
	b.types("cloudshare approve lab-c", `admit lab-c\) has passed`)
	for _, o := range []*operator{a, b, c} {
		o.sees("cloudshare sites", `lab-a +alive`, `lab-b +alive`, `lab-c +alive`)
	}
	b.types("cloudshare members", `lab-c +`+key+` +yes +member`, `What 2 of lab-a, lab-b, lab-c agree to is decided`)
}

// lend has two sites run a task for each other.
func lend(a, b *operator) {
	runsAt(a, b)
	runsAt(b, a)
}

// runsAt has a site's job run at another's machine, in a sandbox there.
func runsAt(owner, at *operator) {
	owner.Helper()
	lender, here := strings.TrimSpace(at.types(where)), strings.TrimSpace(owner.types(where))
	if here == lender {
		owner.Fatalf("%s and %s share the namespace %s", owner.site, at.site, here)
	}
	said := owner.types("cloudshare run --only "+at.site+" -- sh -c 'echo $CLOUDSHARE_SITE; "+where+"'",
		`(?m)^`+at.site+`$`, `(?m)^net:\[\d+\]$`)
	if strings.Contains(said, lender) || strings.Contains(said, here) {
		owner.Errorf("a task of %s at %s runs in no network of its own:\n%s", owner.site, at.site, said)
	}
}

// comeBack has a site lose its disk, and get its name and its account back by the recovery key.
func comeBack(a, b *operator) {
	account := []string{`lab-a +lab-b +1 `, `lab-b +lab-a +1 `}
	b.sees("cloudshare ledger", account...)
	b.types("cloudshare key backup --data-dir data >recovery.txt", `recovery key of site lab-b; it is not shown again`)
	before := b.types("cloudshare key show --data-dir data")
	b.ends(syscall.SIGKILL)
	b.must(os.RemoveAll(filepath.Join(b.dir, "data")))

	a.types("cloudshare invite --again lab-b --out again.token", `lab-b may come back`)
	a.hands("again.token", b)
	b.types("cloudshare key recover --data-dir data --join @again.token --file recovery.txt", `Start its broker now`)
	b.starts("--join @again.token")
	b.sees("cat broker.log", `registered with the federation incarnation=2`)
	b.sees("cloudshare ledger", account...)
	if b.types("cloudshare key show --data-dir data") == before {
		b.Error("it has the key that was lost")
	}
	runsAt(b, a)
	runsAt(a, b)
	b.sees("cloudshare ledger", `lab-a +lab-b +2 `, `lab-b +lab-a +2 `)
}

// expel has two of three expel the third, whose broker waits and says why.
func expel(a, b, c *operator) {
	a.types("cloudshare ban lab-c", `needs 1 vote more`)
	b.sees("cloudshare motions", `ban lab-c +lab-a +open`)
	b.types("cloudshare approve lab-c", `ban lab-c\) has passed`)
	a.sees("cloudshare sites", `lab-c +lost`)
	b.sees("cloudshare members", `lab-c .* expelled`, `What 2 of lab-a, lab-b agree to is decided`)
	c.sees("cat broker.log", `the other members do not talk to this site`, `banned from the federation.*by motion [0-9]+: ask them`)
}

// takeBack has them let it in again, with its vote: its broker, which still runs, comes back by itself.
func takeBack(a, b, c *operator) {
	b.types("cloudshare unban lab-c", `needs 1 vote more`)
	a.sees("cloudshare motions", `lab-c +lab-b +open`)
	a.types("cloudshare approve lab-c", `has passed`)
	a.sees("cloudshare sites", `lab-c +alive`)
	runsAt(c, a)
	runsAt(b, c)
	a.types("cloudshare elector lab-c", `needs 1 vote more`)
	b.types("cloudshare approve lab-c", `has passed`)
	c.sees("cloudshare members", `What 2 of lab-a, lab-b, lab-c agree to is decided`)
}
