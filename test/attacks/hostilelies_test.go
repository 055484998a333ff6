//go:build attacks

package attacks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// lies: the leader gives one that joins a state with runs that never were, and then one voter other entries than all
// others. Both stop, and keep what proves it; all others go on. Nobody mends the two, so it is last.
func (r *rivals) lies(t *testing.T) {
	r.meetLeader(t, r.fed.Sites)
	r.jobsEnd(t, r.fed.Sites...)
	joined := time.Now()
	newcomer := r.joinsByAFalseSnapshot(t)
	lied := time.Now()
	back := r.turn(t, "leader-tells-two-histories")
	r.jobsEnd(t, r.lead, r.third) // of which the victim is told nothing
	r.awaitDone(t, "leader-tells-two-histories", 1)
	history := awaitStopped(t, r.victim, dataOf(r.victim), "history")
	back()
	state := awaitStopped(t, newcomer.Site, newcomer.Dir, "state")
	alarms := []string{r.alarmed(t, r.victim.Name, dataOf(r.victim)), r.alarmed(t, newcomer.Site.Name, newcomer.Dir)}
	r.jobsEnd(t, r.lead, r.third)
	must(t, testbed.AwaitEqualState(within(t), r.lead, r.third))
	r.row("a state with a false ledger for who joins | it stops %.1f s after it began to join; %s", state.Sub(joined).Seconds(),
		alarms[1])
	r.row("other entries for one voter than for all others | it stops %.1f s after the first of them; %s",
		history.Sub(lied).Seconds(), alarms[0])
}

// joinsByAFalseSnapshot has a site without a vote join, of the build that users get: it lends until it has compared.
func (r *rivals) joinsByAFalseSnapshot(t *testing.T) *solo.Broker {
	t.Helper()
	const name = "newcomer"
	token, err := r.lead.InviteWith(within(t), name, map[string]any{"vote": false}, r.victim, r.third)
	must(t, err)
	file := filepath.Join(t.TempDir(), "invitation")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	write := func(how string) { must(t, os.WriteFile(r.file, []byte(how), 0o600)) }
	write(r.lead.Name + " leader-forgets,leader-sends-a-false-snapshot " + name)
	defer write("")
	r.awaitDone(t, "leader-forgets", 1)
	n := solo.New(t, name, "--join", "@"+file)
	r.awaitDone(t, "leader-sends-a-false-snapshot", 1)
	if there, here := runsAt(t, n.Site, r.lead.Name), runsAt(t, r.third, r.lead.Name); there <= here {
		t.Fatalf("the newcomer's ledger has %d runs at the leader, and the true one %d", there, here)
	}
	return n
}

// runsAt returns how many runs others have had at a site, by a broker's ledger.
func runsAt(t *testing.T, by *testbed.Site, executor string) (n uint64) {
	t.Helper()
	l, err := by.Ledger(within(t))
	must(t, err)
	for _, c := range l.Matrix {
		if c.Executor == executor && c.Owner != executor {
			n += c.Tasks
		}
	}
	return n
}

// awaitStopped waits until a broker has stopped because a majority has another history or state, and returns when it
// noticed.
func awaitStopped(t *testing.T, s *testbed.Site, data, what string) time.Time {
	t.Helper()
	var notice struct {
		What string
		At   time.Time
	}
	await(t, s.Name+" stops", func() error {
		text, err := os.ReadFile(filepath.Join(data, "diverged", "diverged.json"))
		if err == nil {
			err = json.Unmarshal(text, &notice)
		}
		if err == nil && s.Alive() {
			err = errors.New("it runs still")
		}
		return err
	})
	if notice.What != what {
		t.Errorf("%s stopped because its %s differs, not its %s", s.Name, notice.What, what)
	}
	return notice.At
}

// alarmed checks that who stopped names, in a file that anybody can check, others that differ from it, and returns what
// that proves and which of the others have been alarmed, too: they may not have looked before it was gone.
func (r *rivals) alarmed(t *testing.T, stopped, data string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "evidence", "differs-"+r.third.Name+"-*.json"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("%s keeps no evidence on %s", stopped, r.third.Name)
	}
	out, err := exec.CommandContext(within(t), solo.Binary, "audit", "check", files[0]).CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil || !strings.Contains(said, "proves that the histories or states of") || !strings.Contains(said, stopped) {
		t.Errorf("%s: %v\n%s", files[0], err, said)
	}
	alarmed := []string{stopped}
	for _, s := range []*testbed.Site{r.lead, r.third} {
		if metric(t, s, `cloudshare_replica_differs{with="`+stopped+`"}`) > 0 {
			alarmed = append(alarmed, s.Name)
		}
	}
	return fmt.Sprintf("alarmed: %s; evidence: %s", strings.Join(alarmed, " "), said)
}
